"""Schedules carried out round by round: while the caller waits, or beside its computing."""

import contextlib
from collections.abc import Iterable, Iterator

import numpy as np

from cnnlab.ranks import collectives
from cnnlab.ranks.mpi import REDUCTIONS, name_of
from cnnlab.ranks.schedules import NOBODY, Step
from cnnlab.ranks.virtual.faults import site
from cnnlab.ranks.virtual.messages import Request

UFUNCS = dict(zip(REDUCTIONS, (np.add, np.multiply, np.maximum, np.minimum), strict=True))


def ufunc(op) -> np.ufunc:
    """What a reduction does with two arrays. Raises ValueError for an unknown one."""
    return UFUNCS[name_of("op", op, REDUCTIONS)]


def perform(comm, flat: np.ndarray, steps: Iterable[Step], combine: np.ufunc) -> None:
    """Carry out one rank's steps on its elements, in place; sums as lesson 23 does."""
    if combine is np.add:
        return collectives.perform(comm, flat, steps)
    for requests in rounds(comm, flat, steps, combine):
        for request in requests:
            request.Wait()
    return None


def rounds(comm, flat, steps, combine: np.ufunc) -> Iterator[list[Request]]:
    """The messages of each round, as they are posted; go on when they are done."""
    received = np.empty_like(flat)
    for to, a, b, source, c, d, add in steps:
        into, requests = received[c:d] if add else flat[c:d], []
        if source != NOBODY and c < d:
            requests.append(comm._receive(into, source, collectives.TAG))
        if to != NOBODY and a < b:
            requests.append(comm._send(flat[a:b], to, collectives.TAG))
        yield [comm._post(request) for request in requests]
        if add and source != NOBODY and c < d:
            combine(flat[c:d], into, out=flat[c:d])


def barrier(rank: int, size: int) -> Iterator[Step]:
    """In round k, a message to the rank 2^k further on."""
    distance = 1
    while distance < size:
        yield Step((rank + distance) % size, 0, 1, (rank - distance) % size, 0, 1)
        distance *= 2


class Beside(Request):
    """A collective that goes on while its rank computes, as if the network did it alone.

    Its calls and additions take no time of the rank's. What it finds is seen after `Wait`, and
    until then the program must leave both of its arrays alone.
    """

    def __init__(self, comm, name: str, collective, flat, steps, combine, sent=None, into=None):
        mine = comm.world, comm.me, comm.me, collectives.TAG, collective.group
        super().__init__(name, *mine, buffer=into, members=comm.members, where=site())
        self.comm, self.flat, self.round, self.receives = comm, flat, [], []
        self.sent, self.its = sent, None if sent is None else sent.tobytes()
        if into is not None:
            self.lent = self.late = True
            self.kept = self.before = into.tobytes()
        self.now, self.rounds = comm.world.clocks[comm.me], rounds(comm, flat, steps, combine)
        comm.world.open[comm.me][self] = None
        self.go_on()
        comm.world.left()

    def go_on(self) -> None:
        """Post the messages of the next rounds, until some are under way; else it is done."""
        while all(request.done is not None for request in self.round):
            self.now = max([self.now, *(request.done for request in self.round)])
            with self.aside():
                self.round = next(self.rounds, None)
            if self.round is None:
                return self.end()
            for request in self.round:
                if request.kind == "receive":
                    self.receives.append(request)
                request.then, request.where = self.go_on, self.where
                self.peer = request.peer if request.done is None else self.peer
        return None

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Be at the time of this collective, and among its messages, for a moment."""
        comm, world, clocks = self.comm, self.world, self.world.clocks
        kept = comm.group, clocks[self.rank], world._since, world.measured
        comm.group, clocks[self.rank], world.measured = self.group, self.now, False
        yield
        self.now = clocks[self.rank]
        comm.group, clocks[self.rank], world._since, world.measured = kept

    def end(self) -> None:
        """All rounds are done."""
        self.round, self.data, self.done = [], self.flat.tobytes(), self.now
        self.taken = self
        heard = [r.taken.told for r in self.receives if r.taken.told is not None]
        self.told = np.max(heard, axis=0) if heard else None
        self.world.wake_for(self)

    @property
    def any_source(self) -> bool:
        """No: its messages have their sources."""
        return False

    def untouched(self) -> None:
        """Raise ValueError if the program has changed an array of it that is still under way."""
        super().untouched()
        if self.sent is not None and self.sent.tobytes() != self.its:
            text = f"expected a buffer left alone until Wait, got a changed one of this {self.kind}"
            raise self.fault(ValueError(f"request: {text}"), "local concurrency")

    def tell(self, status) -> None:
        """A collective has neither source nor tag: the status stays as it is."""

    def deliver(self) -> None:
        """Copy the result to its place, if there is one."""
        if self.buffer is not None:
            super().deliver()
