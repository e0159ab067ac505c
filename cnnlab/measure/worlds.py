"""The same program on a slowed network and in the virtual world: how near are their times?"""

import functools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import Strategy, find
from cnnlab.measure import timing
from cnnlab.network import Network
from cnnlab.ranks import collectives, measure, world
from cnnlab.ranks.record import Traced
from cnnlab.ranks.schedules import block
from cnnlab.ranks.slow import network
from cnnlab.ranks.virtual import Link, World
from cnnlab.training import Sgd
from cnnlab.training.optimizers import OPTIMIZERS
from cnnlab.training.pace import Look
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
    said = comm.allgather(begin)
    begin = max(said) + 3 * (now() - begin)  # all know of it by then
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
    result = {}
    if comm.rank == 0:
        link = Link(latency, bandwidth, call=max(0.0, real[SHORT] / 2 - latency - 4 / bandwidth))
        virtual = World(comm.size, link).run(timed, data, real[COMPUTING], 1)[0]
        result = {name: (real[name], virtual[name]) for name in real}
    comm.bcast(None)  # the others wait: rank 0 has a core for itself
    return result


def table(result: dict[str, tuple[float, float]]) -> str:
    """A line for each program: both times, and their ratio."""
    rows = [
        f"{name:28} {1e6 * real:9.1f} µs slowed {1e6 * virtual:9.1f} µs virtual  "
        f"{virtual / real:.2f}"
        for name, (real, virtual) in result.items()
    ]
    return "\n".join(rows)


# --- steps of data parallelism in the virtual world: what they take on any number of ranks --------


class Compute(NamedTuple):
    """A model of what one rank computes: seconds for a step, and for each image of its share."""

    step: float
    image: float

    def seconds(self, n_images: int) -> float:
        """The gradients of so many images, and the update."""
        return self.step + n_images * self.image


def compute_model(
    sizes: Sequence[int] = (1, 16, 64, 256),
    kernels: str | Strategy = "vector",
    network: Network | None = None,
    repeats: int = 9,
) -> tuple[Compute, dict[int, float]]:
    """The model fitted to gradients and update on this machine, and the medians, by images."""
    strategy, network = find(kernels), network or Network()
    images = np.random.default_rng(0).random((max(sizes), *network.image_shape), np.float32)
    labels = np.arange(len(images)) % network.classes
    group = Replica(strategy, network.parameters(), images, labels, len(images), Sgd(1e-3))

    def call(n: int):
        chosen = np.arange(n)
        return lambda: (group.gradients(chosen), group.update(n))

    timings = timing.compare({str(n): call(n) for n in sizes}, repeats=repeats)
    medians = {n: timings[str(n)].median for n in sizes}
    weights = [1 / seconds for seconds in medians.values()]  # so that relative errors count
    image, step = np.polyfit(sizes, list(medians.values()), 1, w=weights)
    return Compute(max(0.0, float(step)), float(image)), medians


@functools.cache
def step_seconds(n_ranks: int, batch: int, compute: Compute, link: Link, n_numbers: int) -> float:
    """The virtual seconds of one step: each rank computes its share, then all add up gradients."""

    def program(comm) -> None:
        first, last = block(comm.rank, comm.size, batch)
        comm.compute(compute.seconds(last - first))
        mine = np.zeros(n_numbers, np.float32)
        comm.Allreduce(mine, np.empty_like(mine))

    world = World(n_ranks, link)
    world.run(program)
    return world.seconds


def training_seconds(
    looks: Sequence[Look], n_ranks: int, compute: Compute, link: Link, n_numbers: int
) -> float:
    """The virtual seconds of a training at a pace, on so many ranks.

    Ranks find the parameters of one, so the steps are those of any training at that pace.
    """
    total, before = 0.0, 0
    for look in looks:
        each = step_seconds(n_ranks, look.batch, compute, link, n_numbers)
        total, before = total + (look.steps - before) * each, look.steps
    return total


# --- what lessons run on every rank: collectives with a log, round trips, messages ----------------


def fastest(operation: str, n: int, runs: int = 30) -> tuple[list, float, float]:
    """Runs on every rank: the log of an operation's fastest run on n numbers, of the rank's value.

    Besides, the mean of the rank's own numbers afterwards, and the sum of the means of all rows of
    `scatter`'s and `gather`'s whole array.
    """
    best, log = np.inf, []
    for _ in range(runs):
        comm = Traced(world())
        part, whole = np.full(n, comm.rank, np.float32), np.zeros((comm.size, n), np.float32)
        arguments = {"scatter": (whole, part), "gather": (part, whole)}.get(operation, (part,))
        comm.Barrier()
        getattr(collectives, operation)(comm, *arguments)
        ends = comm.allgather((comm.log[0].begin, comm.log[-1].end))
        seconds = max(end for _, end in ends) - min(begin for begin, _ in ends)
        if seconds < best:
            best, log = seconds, comm.log
    return log, part.sum() / n, whole.sum() / n


def round_trips(n: int, repeats: int = 11) -> dict[str, list[float]]:
    """Runs on two ranks: seconds of a round trip of n numbers, as an array and as a list."""
    comm, numbers = world(), np.arange(float(n))
    listed, peer = numbers.tolist(), 1 - comm.rank

    def array(send_first):
        for sends in (send_first, not send_first):
            comm.Send(numbers, peer) if sends else comm.Recv(numbers, peer)

    def pickled(send_first):
        for sends in (send_first, not send_first):
            comm.send(listed, peer) if sends else comm.recv(source=peer)

    calls = {"array": array, "list": pickled}
    calls = {name: functools.partial(call, comm.rank == 0) for name, call in calls.items()}
    return measure.alternately(comm, calls, repeats)


def messages(sizes: Sequence[int]) -> tuple[list[list[float]], float]:
    """Runs on every rank: samples of the seconds of a message of each size, and of an addition."""
    return measure.ping_pong(world(), sizes), measure.local_add(world())
