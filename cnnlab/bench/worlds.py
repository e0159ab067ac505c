"""The same program on a slowed network and in the virtual world: how near are their times?"""

import time
from collections.abc import Callable

import numpy as np

from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import find
from cnnlab.network import Network
from cnnlab.ranks.slow import network
from cnnlab.ranks.virtual import Link, World
from cnnlab.training.optimizers import OPTIMIZERS
from cnnlab.training.replica import Replica

COMPUTING = "computing of a step"
SHORT = "ping-pong, 1 number"  # what the cost of a call is taken from


def programs(comm, data, seconds: float | None, batch: int = 64) -> dict[str, Callable]:
    """What is compared, by name, for a rank of either world: calls that all ranks make together.

    `seconds` is how long virtual ranks compute in a step; real ones compute.
    """
    strategy, params = find("vector"), Network().parameters(0)
    held = strategy, params, data.train_images, data.train_labels, batch
    replica = Replica(*held, OPTIMIZERS["sgd"].load()(0.1))
    method, chosen = DataParallel(comm), np.arange(batch)

    def computing():
        if seconds is None:
            replica.gradients(chosen[method.share(batch)])
            replica.update(batch)
        else:
            comm.compute(seconds)

    def step():
        if seconds is not None:
            comm.compute(seconds)
        method.step(replica, chosen)

    calls = {COMPUTING: computing, "data-parallel step": step}
    for n in (1, 1_000, 10_000):
        calls[f"ping-pong, {n:,} number{'s' * (n > 1)}"] = lambda n=n: ping_pong(comm, n)
    for n in (1_000, params.flat.size, 100_000):
        mine, total = np.zeros((2, n), np.float32)
        calls[f"allreduce, {n:,} numbers"] = lambda a=mine, b=total: comm.Allreduce(a, b)
    return calls


def ping_pong(comm, n: int) -> None:
    """There and back between ranks 0 and 1."""
    a = np.ones(n, np.float32)
    for sends in (comm.rank == 0, comm.rank == 1):
        if sends:
            comm.Send(a, 1 - comm.rank)
        elif comm.rank < 2:
            comm.Recv(a, 1 - comm.rank)


def timed(comm, data, seconds: float | None = None, repeats: int = 51) -> dict[str, float]:
    """The median seconds of each of `programs`, taken in turn, on the slowest rank.

    All ranks begin at the same moment: those of either world share a clock.
    """
    now, calls = getattr(comm, "clock", time.perf_counter), programs(comm, data, seconds)
    samples = np.empty((repeats + 1, len(calls)))  # the first is a warm-up
    for row in samples:
        for k, call in enumerate(calls.values()):
            begin = meet(comm, now)
            call()
            row[k] = now() - begin
    slowest = np.max(comm.allgather(samples[1:]), axis=0)
    return dict(zip(calls, np.median(slowest, axis=0).tolist(), strict=True))


def meet(comm, now: Callable[[], float]) -> float:
    """Wait until a moment that is the same for all ranks, and return it."""
    begin = now()
    told = comm.allgather(begin)
    begin = max(told) + 3 * (now() - begin)  # all know of it by then
    begin = max(comm.allgather(begin))
    if hasattr(comm, "compute"):
        comm.compute(max(0.0, begin - now()))
    while now() < begin - 1e-12:
        pass
    return begin


def compare(
    comm, data, latency: float, bandwidth: float, repeats: int = 51
) -> dict[str, tuple[float, float]]:
    """Seconds on the slowed network of real ranks, and virtual seconds, of each of `programs`.

    What a call costs the virtual ranks is taken from the shortest ping-pong, what a step computes
    from that alone; the rest is predicted. Every rank of `comm` calls this; rank 0 gets the times,
    the others nothing.
    """
    with network(latency, bandwidth, comm) as slow:
        real = timed(slow, data, repeats=repeats)
    found = {}
    if comm.rank == 0:
        link = Link(latency, bandwidth, call=max(0.0, real[SHORT] / 2 - latency - 4 / bandwidth))
        virtual = World(comm.size, link).run(timed, data, real[COMPUTING], 1)[0]
        found = {name: (real[name], virtual[name]) for name in real}
    comm.bcast(None)  # the others wait: rank 0 has a core for itself
    return found


def table(found: dict[str, tuple[float, float]]) -> str:
    """A line for each program: both times, and their ratio."""
    rows = [
        f"{name:28} {1e6 * real:9.1f} µs slowed {1e6 * virtual:9.1f} µs virtual  "
        f"{virtual / real:.2f}"
        for name, (real, virtual) in found.items()
    ]
    return "\n".join(rows)
