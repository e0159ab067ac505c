"""What lessons run on every rank: collectives with a log, round trips, races of schedules."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cnnlab.bench.measure import Timing
from cnnlab.ranks import collectives, costmodel, measure, round_model, world
from cnnlab.ranks.cluster import cluster
from cnnlab.ranks.schedules import SCHEDULES
from cnnlab.ranks.trace import Traced


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


class Race(NamedTuple):
    """Allreduces by schedule, a Timing for each size; and two models fitted in the same run.

    `rounds` are the median seconds of a round by kind, at half of each size and at each.
    """

    timed: dict[str, list[Timing]]
    model: costmodel.Model
    by_rounds: round_model.RoundModel
    rounds: dict[str, list[float]]


def race(n_ranks: int, sizes: Sequence[int]) -> Race:
    """MPI's allreduce and every schedule's at each of the sizes, in float32; starts the ranks."""
    names = ["MPI", *SCHEDULES]
    with cluster(n_ranks) as ranks:
        one_way, add, lead, found = ranks.run(on_each, names, sizes)[0]
    rounds, raced = zip(*found, strict=True)
    medians = {
        kind: [float(np.median(samples)) for at in rounds for samples in at[kind]]
        for kind in round_model.KINDS
    }
    at = [size for n in sizes for size in (n // 2, n)]
    return Race(
        {name: [Timing(name, tuple(one[name])) for one in raced] for name in names},
        costmodel.fit(sizes, [np.median(samples) for samples in one_way], add),
        round_model.RoundModel(at, medians, lead),
        medians,
    )


def on_each(names: Sequence[str], sizes: Sequence[int]) -> tuple:
    """Runs on every rank: messages, an addition, Python's share, and rounds and races by size."""
    comm = world()
    one_way, add = messages(sizes)
    found = [
        (round_model.rounds(comm, [n // 2, n]), measure.allreduces(comm, names, n)) for n in sizes
    ]
    return one_way, add, round_model.leading(comm), found


def near(
    predicted: dict[str, Sequence[float]], timed: dict[str, Sequence[Timing]], within: float = 0.25
) -> int:
    """How many predicted seconds differ from those measured by less than the share `within`."""
    pairs = (
        (guess, t) for n, of in predicted.items() for guess, t in zip(of, timed[n], strict=True)
    )
    return sum(abs(guess / timing.median - 1) < within for guess, timing in pairs)
