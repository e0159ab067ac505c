"""Times of data-parallel steps, by the way in which two ranks add up their gradients."""

import functools
from collections.abc import Sequence

import numpy as np

from cnnlab.bench.measure import Timing
from cnnlab.distributed.data_parallel import DataParallel, Overlapping
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.ranks import measure, world
from cnnlab.ranks.cluster import cluster
from cnnlab.runtime import thread_pool
from cnnlab.training import Method, Replica, Sgd

EIGHT = 8  # steps of a call, where threads work inside ranks


class ThroughPython(DataParallel):
    """Messages, with Python between the steps."""

    def loop(self, replica):
        """No compiled loop: `step` after `step`."""
        return None


def samples(
    batches: Sequence[int], n_steps: int = 32, repeats: int = 11
) -> dict[str, Sequence[float]]:
    """Runs on every rank: seconds of `n_steps` steps, by way and batch, such as "memory 64".

    one rank : the whole batch on rank 0
    on their own : each rank its share, and nothing is said
    memory, message : gradients added up in shared memory, or by MPI
    through Python : by MPI, with Python between the steps
    overlap : the message of one half of the share while the other is computed
    allreduce : of as many gradients as there are, without a step
    """
    comm, net = world(), Network()
    images = np.random.default_rng(0).random((4096, *net.image_shape), np.float32)
    labels, order = np.arange(4096) % 10, np.random.default_rng(1).permutation(4096)

    def call(method, n):
        replica = Replica(KERNELS["vector"], net.parameters(), images, labels, n, Sgd(0.1))
        return functools.partial(method.steps, replica, np.resize(order, n_steps * n))

    ways = {"memory": DataParallel(comm), "message": DataParallel(comm, window=False)}
    ways |= {"through Python": ThroughPython(comm), "overlap": Overlapping(comm)}
    calls, (mine, total) = {}, (net.zeros().flat, net.zeros().flat)
    for n in batches:
        calls[f"one rank {n}"] = (lambda: None) if comm.rank > 0 else call(Method(), n)
        calls[f"on their own {n}"] = call(Method(), n // comm.size)
        calls |= {f"{way} {n}": call(method, n) for way, method in ways.items()}
    calls["allreduce"] = lambda: [comm.Allreduce(mine, total) for _ in range(n_steps)]
    return measure.alternately(comm, calls, repeats)


def ranks_or_threads(n: int, batch: int = 256, rounds: int = 4) -> list[Timing]:
    """A step on n ranks of one thread, and on one rank of n threads, in turn; needs an MPI."""
    found: dict[tuple[int, int], list[float]] = {(n, 1): [], (1, n): []}
    with cluster(n) as many, cluster(1, n_threads=n) as one:
        for _ in range(rounds):  # in turn, because the machine changes its speed
            found[n, 1] += many.run(with_threads, 1, batch)[0]
            found[1, n] += one.run(with_threads, n, batch)[0]
    return [Timing(f"{a} × {b}", tuple(s / EIGHT for s in of)) for (a, b), of in found.items()]


def with_threads(n_threads: int, batch: int, repeats: int = 5) -> Sequence[float]:
    """Runs on every rank: seconds of eight steps on a batch, with threads inside the rank."""
    comm, net = world(), Network()
    strategy = KERNELS["threads" if n_threads > 1 else "vector"]
    images = np.random.default_rng(0).random((batch, *net.image_shape), np.float32)
    labels = np.arange(batch) % net.classes
    replica = Replica(strategy, net.parameters(), images, labels, batch, Sgd(0.1))
    method, order = DataParallel(comm), np.resize(np.arange(batch), EIGHT * batch)
    with thread_pool.threads(n_threads):
        return measure.alternately(comm, {"": lambda: method.steps(replica, order)}, repeats)[""]
