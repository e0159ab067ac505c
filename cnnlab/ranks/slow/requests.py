"""Messages under way on a slowed network, and what those of a rank have in common."""

import os
import pickle
import time
from collections.abc import Iterator

import numpy as np

from cnnlab.ranks.record import Event
from cnnlab.ranks.virtual.link import Link

HEAD = 8  # bytes in front of a message: from when on it may be seen
clock = time.perf_counter


class Wire:
    """What a rank's messages have in common: until when they keep its link busy, and a log.

    `late` of its `n` messages were held up longer than the link says, by MPI or by the machine.
    """

    def __init__(self, link: Link):
        self.link, self.free, self.n, self.late = link, 0.0, 0, 0
        self.log: list[Event] = []
        self.pending: list[Request] = []  # whose bytes MPI may still need

    def send(self, n_bytes: int, now: float) -> tuple[float, float]:
        """When a message of this moment is out, and from when on it may be seen."""
        self.free = max(now, self.free) + self.link.sending(n_bytes)
        return self.free, self.free + self.link.latency


class Request:
    """A send or a receive under way; `into` is the array received, None for an object.

    `out` is when a send leaves its link. `place` holds the message, behind the time of its arrival.
    """

    def __init__(self, comm: object, real, place: np.ndarray, into=None, out: float | None = None):
        self.comm, self.real, self.place, self.into, self.out = comm, real, place, into, out
        self.done, self.n_bytes = False, 0
        self.told = None  # of a message that MPI is done with

    def Wait(self, status=None) -> bool:
        """Wait until it is done: a send is out, a message may be seen."""
        if not self.done:
            begin = clock()
            self._landed(wait=True)
            self._finish(begin, status)
        return True

    def Test(self, status=None) -> bool:
        """Whether it is done; then it needs no `Wait`."""
        if not self.done and self._landed() and clock() >= self._due():
            self._finish(clock(), status)
        return self.done

    def _landed(self, wait: bool = False) -> bool:
        """Whether MPI is done with it."""
        from mpi4py import MPI

        if self.told is None:
            told = MPI.Status()
            if self.real.Wait(told) if wait else self.real.Test(told):
                self.told = told
                self.n_bytes = told.Get_count(MPI.BYTE) - HEAD if self.out is None else 0
        return self.told is not None

    def _due(self) -> float:
        """When it may be done."""
        return self.place[:HEAD].view(float)[0] if self.out is None else self.out

    def _finish(self, begin: float, status) -> None:
        """Hand the message over when it is due."""
        from mpi4py import MPI

        comm, due, here = self.comm, self._due(), clock()
        if self.into is not None:
            self.into.reshape(-1).view(np.uint8)[: self.n_bytes] = self._content()
        while (now := clock()) < due:
            if comm.crowded:  # then others have to spin, too
                os.sched_yield()
        self.done = True
        if self.out is not None:
            comm.note("wait", begin, now)
            return
        source = self.told.Get_source()
        comm.wire.n, comm.wire.late = comm.wire.n + 1, comm.wire.late + (begin < due < here)
        comm.note("receive", begin, now, source, self.n_bytes)
        if status is not None:
            status.Set_source(source)
            status.Set_tag(self.told.Get_tag())
            status.Set_elements(MPI.BYTE, self.n_bytes)

    def _content(self) -> np.ndarray:
        return self.place[HEAD : HEAD + self.n_bytes]

    def wait(self, status=None):
        """Wait until it is done; the object received, if it is one."""
        self.Wait(status)
        return self._thing()

    def test(self, status=None):
        """Whether it is done, and the object received."""
        done = self.Test(status)
        return done, self._thing() if done else None

    def _thing(self):
        is_object = self.out is None and self.into is None
        return pickle.loads(self._content()) if is_object else None

    @staticmethod
    def Waitall(requests, statuses=None) -> bool:
        """Wait for all of them."""
        for request, status in zip(requests, statuses or [None] * len(requests), strict=True):
            request.Wait(status)
        return True


class Beside:
    """An allreduce under way: it goes on when its rank asks, as MPI's does without a thread."""

    def __init__(self, collective: "Apart", messages: Iterator, flat: np.ndarray, into: np.ndarray):
        self.collective, self.messages, self.flat, self.into = collective, messages, flat, into
        self.round, self.done = [], False
        self.next()

    def next(self) -> None:
        """Post the next round, or end."""
        with self.collective:
            self.round = next(self.messages, None)
        if self.round is None:
            self.into.reshape(-1)[:] = self.flat
            self.done = True

    def Wait(self, status=None) -> bool:
        """Carry out what is left of it."""
        while not self.done:
            Request.Waitall(self.round)
            self.next()
        return True

    def Test(self, status=None) -> bool:
        """Go on as far as messages have come; whether it is done."""
        while not self.done and all([request.Test() for request in self.round]):
            self.next()
        return self.done


class Apart:
    """The messages of one collective, apart from all others."""

    def __init__(self, comm: object, tag: int):
        self.comm, self.tag = comm, tag

    def __enter__(self) -> None:
        self.comm.inside, self.outer = self.tag, self.comm.inside

    def __exit__(self, *_) -> None:
        self.comm.inside = self.outer
