"""Lesson 20, ranks: its exercises, and what it runs on every rank."""

import functools
import time
from collections.abc import Sequence

import numpy as np

from cnnlab.check import collective, kinds
from cnnlab.ranks import collectives, measure, world
from cnnlab.ranks.record import Event


@kinds.kernel(
    "reduce",
    "Begin plainly: rank 0 receives from all others, in turn, into an array of its own.",
    "Turn the broadcast round: the rank that received last there sends first here, and adding "
    "takes the place of copying. Mind numbers of ranks that are no power of two.",
    by=collective.kernel,
)
def reduce(comm, array):
    """A binomial tree again, with other edges: 3 tells 2 here, where it heard from 1."""
    other, distance = np.empty_like(array), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.Send(array, comm.rank - distance)
            return
        if comm.rank + distance < comm.size:
            comm.Recv(other, comm.rank + distance)
            array += other
        distance *= 2


@kinds.formula(
    lambda rng: {"n_ranks": int(2 ** rng.integers(2, 17) + rng.integers(-1, 2))},
    "How many ranks know after one round, after two, after three?",
    "After r rounds, 2 to the r ranks know. You want the least r for which that is enough.",
)
def rounds(n_ranks):
    """The ranks that know double with each round."""
    return (n_ranks - 1).bit_length()


@kinds.formula(
    lambda rng: {
        "latency": float(rng.uniform(1e-6, 1e-5)),
        "bandwidth": float(rng.uniform(1, 20e9)),
    },
    "The transfer of s bytes takes s / bandwidth.",
    "Set s / bandwidth equal to the latency.",
)
def half_way(latency, bandwidth):
    """s / bandwidth = latency."""
    return latency * bandwidth


# --- collectives with a log, round trips, messages ------------------------------------------------


class TracedComm:
    """An MPI communicator with a `log` of each send and receive, as `Event`.

    The clock is the machine's, the same for all its ranks. Other operations pass unlogged.
    """

    def __init__(self, comm):
        self.comm, self.log = comm, []

    def __getattr__(self, name):
        return getattr(self.comm, name)

    def _note(self, kind: str, peer: int, buffer, begin: float) -> None:
        done = time.perf_counter()
        self.log.append(Event(self.comm.rank, kind, begin, done, peer, buffer.nbytes))

    def Send(self, buffer, dest: int, tag: int = 0) -> None:
        begin = time.perf_counter()
        self.comm.Send(buffer, dest, tag)
        self._note("send", dest, buffer, begin)

    def Recv(self, buffer, source: int, tag: int = 0) -> None:
        begin = time.perf_counter()
        self.comm.Recv(buffer, source, tag)
        self._note("receive", source, buffer, begin)

    def Sendrecv(self, sent, dest: int, tag: int, received, source: int, from_tag: int) -> None:
        begin = time.perf_counter()
        self.comm.Sendrecv(sent, dest, tag, received, source, from_tag)
        self._note("send", dest, sent, begin)
        self._note("receive", source, received, begin)


def fastest(operation: str, n: int, runs: int = 30) -> tuple[list, float, float]:
    """Runs on every rank: the log of an operation's fastest run on n numbers, of the rank's value.

    Besides, the mean of the rank's own numbers afterwards, and the sum of the means of all rows of
    `scatter`'s and `gather`'s whole array.
    """
    best, log = np.inf, []
    for _ in range(runs):
        comm = TracedComm(world())
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
