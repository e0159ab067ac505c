"""The same work on two real ranks and on two virtual ones, whose link is fitted to the real."""

import functools
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from cnnlab.data import load
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import find
from cnnlab.network import NETWORKS
from cnnlab.ranks import fit, mpi, world
from cnnlab.ranks.cluster import cluster
from cnnlab.ranks.collectives import allreduce
from cnnlab.ranks.virtual import Link, World, one_memory
from cnnlab.training import Replica, Sgd

SIZES = (2, 1 << 8, 1 << 14, 1 << 18)  # float32: 8 bytes to 1 MB
SCHEDULES = ("butterfly", "ring", "rabenseifner")


@functools.cache
def seconds_per_image(strategy: str = "vector", network: str = "report", batch: int = 64) -> float:
    """What one image of a batch costs here, for `comm.compute`: measured once, in seconds."""
    replica = learner(strategy, network, batch)
    chosen, samples = np.arange(batch), []
    for _ in range(12):
        start = time.perf_counter()
        replica.gradients(chosen)
        samples.append((time.perf_counter() - start) / batch)
    return float(np.median(samples[1:]))  # the first has compiled


def learner(strategy: str, network: str, batch: int) -> Replica:
    """Something to train: the first images of the digits."""
    data = load("digits", batch, 1)
    images = np.resize(data.train_images, (batch, *data.train_images.shape[1:]))
    labels = np.resize(data.train_labels, batch)
    params = NETWORKS[network].parameters()
    return Replica(find(strategy), params, images, labels, batch, Sgd(0.1))


def times(comm, repeats: int = 11, quantile: float = 0.5) -> dict[str, float]:
    """Seconds of each call, on the slowest rank, by any clock that ranks have: of a quantile."""
    calls = works(comm)
    for call in calls.values():
        call()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            samples[name].append(comm.allreduce(once(comm, call), mpi.MAX))
    return {name: float(np.quantile(found, quantile)) for name, found in samples.items()}


def once(comm, call: Callable) -> float:
    """The seconds of a call, whose memory another one has just had."""
    clock = getattr(comm, "clock", time.perf_counter)
    call()
    comm.Barrier()
    start = clock()
    call()
    return clock() - start


def works(comm) -> dict[str, Callable]:
    """What is timed: allreduces of several lengths by several schedules, and a step of training."""
    found: dict[str, Callable] = {}
    for n in SIZES:
        for schedule in SCHEDULES:
            array = np.zeros(n, np.float32)
            call = functools.partial(allreduce, comm, array, schedule)
            found[f"{schedule}, {array.nbytes:,} B"] = call
    replica, method = learner("vector", "report", 256), DataParallel(comm)
    found["a step, batch 256"] = lambda: method.step(replica, np.arange(256))
    return found


class Silent:
    """Two ranks, of which nobody sends anything: what is left of an allreduce is its Python."""

    rank, size = 0, 2

    def Sendrecv(self, *arguments) -> None:
        """Do nothing."""


def between(comm, trips: int = 99) -> float:
    """Seconds of Python before and after a short message, and the message's, by any clock."""
    clock, alone, samples = getattr(comm, "clock", time.perf_counter), Silent(), []
    short, into, peer = np.zeros(2, np.float32), np.zeros(2, np.float32), 1 - comm.rank
    for _ in range(trips):
        start = clock()
        allreduce(alone, into, "butterfly")
        comm.Sendrecv(short, peer, 0, into, peer, 0)
        allreduce(alone, into, "butterfly")
        samples.append(clock() - start)
    return float(np.median(samples))


def real(repeats: int, quantile: float) -> tuple[tuple, dict[str, float]]:
    """On each rank of a cluster: what its messages and its Python take, and each work."""
    comm = world()
    found = fit.memory(comm, repeats, quantile)
    python = between(comm) - fit.exchange(comm, fit.SIZES[0], 99)
    return (found.link, found.handshake, python), times(comm, repeats, quantile)


def virtual(link: Link, handshake: float, python: float) -> World:
    """Two ranks in one memory, whose Python before and after a message takes as long as given.

    Virtual ranks' calls are Python too, and after each a rank's own has to become fast again.
    """
    free = World(2, Link(0.0, math.inf, 0.0, eager=1 << 40), measured=True)
    waking = max(0.0, free.run(between)[0] - python) / 2
    return World(2, one_memory(link, handshake), measured=True, waking=waking)


def compare(
    repeats: int = 11, rounds: int = 3, quantile: float = 0.5
) -> dict[str, tuple[float, float]]:
    """Real and virtual seconds of each work, medians over rounds in turn; prints both and a ratio.

    Within a round, the `quantile` of the repeats counts: on a machine with other work, a low one
    says what ranks take that nobody interrupts. Needs an MPI; starts two ranks.
    """
    found: list[tuple[dict, dict]] = []
    with cluster(2) as two:
        for _ in range(rounds):
            fitted, here = two.run(real, repeats, quantile)[0]
            there = virtual(*fitted).run(times, repeats, quantile)[0]
            found.append((here, there))
    medians = {
        name: tuple(float(np.median([one[i][name] for one in found])) for i in (0, 1))
        for name in found[0][0]
    }
    link, handshake, _ = fitted
    print(f"two ranks, {one_memory(link)}, {1e6 * link.call:.2g} µs a call")
    print(f"beyond {link.eager:,} B, messages take {1e6 * handshake:.2g} µs more")
    print(table(medians))
    return medians


def table(medians: dict[str, Sequence[float]]) -> str:
    """A line for each work: microseconds on real ranks, of virtual ones, and their ratio."""
    rows = [f"{'':28}{'real µs':>12}{'virtual µs':>12}{'ratio':>8}"]
    for name, (here, there) in medians.items():
        rows.append(f"{name:28}{1e6 * here:12.1f}{1e6 * there:12.1f}{there / here:8.2f}")
    return "\n".join(rows)
