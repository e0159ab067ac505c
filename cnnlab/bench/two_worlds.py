"""The same work on two real ranks and on two virtual ones, whose link is fitted to the real."""

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from cnnlab.data import load
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import find
from cnnlab.network import NETWORKS
from cnnlab.ranks import fit, mpi, world
from cnnlab.ranks.cluster import cluster
from cnnlab.ranks.collectives import allreduce
from cnnlab.ranks.virtual import Link, World
from cnnlab.ranks.virtual.topology import OneMemory, one_memory
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


def real(repeats: int, quantile: float) -> tuple[tuple, dict[str, float]]:
    """On each rank of a cluster: the fitted link and handshake, and the seconds of each work."""
    comm = world()
    found = fit.memory(comm, repeats, quantile)
    return (found.link, found.handshake), times(comm, repeats, quantile)


def relieved(link: Link, handshake: float) -> OneMemory:
    """Ranks in one memory, without what calls take in the virtual world: that is measured, too."""
    free = World(2, Link(0.0, math.inf, 0.0, eager=1 << 40), measured=True)
    own = free.run(fit.exchange, SIZES[0], 99)[0]
    call = max(0.0, link.call - own / 2)  # two in an exchange
    latency = max(0.0, link.latency + 2 * (link.call - call) - own)
    return one_memory(replace(link, latency=latency, call=call), handshake)


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
            network = relieved(*fitted)
            there = World(2, network, measured=True).run(times, repeats, quantile)[0]
            found.append((here, there))
    medians = {
        name: tuple(float(np.median([one[i][name] for one in found])) for i in (0, 1))
        for name in found[0][0]
    }
    link, handshake = fitted
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
