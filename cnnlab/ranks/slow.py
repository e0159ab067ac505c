"""A slow network on the real ranks of one machine: a message is seen no earlier than it says.

So the cost of a network can be measured where there is none: ranks spin until a message may be
seen, on the clock that all processes of a machine share. Nothing is sped up: the time that MPI
itself takes comes on top where it is longer.
"""

import contextlib
import copy
import os
import pickle
import time
from collections.abc import Iterator

import numpy as np

from cnnlab.ranks.virtual import Link
from cnnlab.ranks.virtual.calls import TAGS, Calls, checked, destination
from cnnlab.ranks.virtual.messages import ANY, Waits
from cnnlab.runtime import thread_pool

HEAD = 8  # bytes in front of a message: from when on it may be seen
LARGEST_OBJECT = 1 << 20  # bytes of an object that `irecv` has room for
clock = time.perf_counter


@contextlib.contextmanager
def network(latency: float, bandwidth: float, comm=None) -> Iterator["Slow"]:
    """Slow down the messages between the ranks of `comm` (all ranks) for a `with` block.

    Yields a communicator: its messages are seen no earlier than `latency` seconds after they are
    out, n bytes take n / `bandwidth` seconds, and a rank's messages go out one after the other.
    Raises ValueError for impossible numbers, or ranks of several machines, which share no clock.
    """
    from mpi4py import MPI

    link, comm = Link(latency, bandwidth, call=0.0), comm or MPI.COMM_WORLD
    if len(set(names := comm.allgather(MPI.Get_processor_name()))) > 1:
        raise ValueError(f"network: expected ranks of one machine, got {len(set(names))} machines")
    slow = Slow(comm, link)
    yield slow
    slow.Free()


class Wire:
    """The link of a rank, and until when its messages keep it busy."""

    def __init__(self, link: Link):
        self.link, self.free = link, 0.0
        self.pending: list[SlowRequest] = []  # whose bytes MPI may still need

    def send(self, n_bytes: int, now: float) -> tuple[float, float]:
        """When a message of this moment is out, and from when on it may be seen."""
        self.free = max(now, self.free) + n_bytes / self.link.bandwidth
        return self.free, self.free + self.link.latency


class CallUnderWay(Waits):
    """A collective under way: it goes on when its rank asks, as MPI's does without a thread."""

    def __init__(self, name: str, comm: "Slow", arrays: dict[str, tuple], rounds: Iterator):
        self.arrays, self.rounds, self.round, self.done = arrays, rounds, [], False
        self._next()

    def _next(self) -> None:
        """Post the next round, or end."""
        self.round = next(self.rounds, None)
        if self.round is None:
            self.done = True
            for name, (array, result) in self.arrays.items():
                if name != "sendbuf":
                    array[...] = result

    def Wait(self, status=None) -> bool:
        """Carry out what is left of it."""
        while not self.done:
            SlowRequest.Waitall(self.round)
            self._next()
        return True

    def Test(self, status=None) -> bool:
        """Go on as far as messages have come; whether it is done."""
        while not self.done and all([request.Test() for request in self.round]):
            self._next()
        return self.done


class Slow(Calls):
    """A communicator of a slowed network, made by `network`, with the interface of mpi4py's.

    Its collectives are those of virtual ranks, made of messages. What it does not know it refuses
    by name.
    """

    where, begun = "a slowed network", CallUnderWay

    def __init__(self, comm, link: Link, wire: Wire | None = None, n_ranks=None):
        self.comm, self.apart = comm.Dup(), comm.Dup()  # for the program, and for collectives
        self.rank, self.size, self.members = comm.rank, comm.size, range(comm.size)
        self.wire, self.n_ranks = wire or Wire(link), n_ranks or comm.size  # of the network
        self.tag, self._calls = None, 0  # the one tag of a collective's messages
        self.crowded = self.n_ranks > thread_pool.usable_cores()

    def irecv(self, buf=None, source: int | None = None, tag: int | None = None) -> "SlowRequest":
        """Begin to receive an object of at most LARGEST_OBJECT bytes, which `wait` returns."""
        return self._expect(source, tag, LARGEST_OBJECT, destination(buf, pickled=True))

    def Split(self, color: int, key: int = 0) -> "Slow":
        """A communicator of the ranks with the same colour, in the order of their keys."""
        part = self.comm.Split(color, key)
        made = Slow(part, self.wire.link, self.wire, self.n_ranks)
        part.Free()
        return made

    def Free(self) -> None:
        """Wait until MPI is done with all that was sent, and give the communicator back."""
        for request in self.wire.pending:
            request.Wait()
        self.comm.Free()
        self.apart.Free()

    def _send(self, what, dest: int, tag: int, pickled: bool = False) -> "SlowRequest":
        what = np.frombuffer(pickle.dumps(what), np.uint8) if pickled else checked("buf", what)
        dest, tag = self._peer("dest", dest), self._tag(tag, False)
        out, seen = self.wire.send(what.nbytes, clock())
        place = np.empty(HEAD + what.nbytes, np.uint8)
        place[:HEAD].view(float)[0], place[HEAD:] = seen, what.reshape(-1).view(np.uint8)
        real = self.comm.Isend(place, dest, tag if self.tag is None else self.tag)
        request, pending = SlowRequest(self, real, place, out=out), self.wire.pending
        pending[:] = [request, *(one for one in pending if not one.landed())]
        return request

    def _receive(self, buf, source: int, tag: int, pickled: bool = False) -> "SlowRequest":
        array = destination(buf, pickled)
        return self._expect(source, tag, None if pickled else array.nbytes, array)

    def _expect(self, source: int, tag: int, n_bytes: int | None, into=None) -> "SlowRequest":
        """A receive of n bytes; of None, of an object that is looked for when it is waited for."""
        from mpi4py import MPI

        source, tag = self._source(source), self._tag(tag, True)
        tag = self.tag if self.tag is not None else MPI.ANY_TAG if tag == ANY else tag
        ends = MPI.ANY_SOURCE if source == ANY else source, tag
        if n_bytes is None:
            return SlowRequest(self, None, None, ends=ends)
        place = np.empty(HEAD + n_bytes, np.uint8)
        return SlowRequest(self, self.comm.Irecv(place, *ends), place, into)

    def _post(self, request: "SlowRequest") -> "SlowRequest":
        return request  # it is under way

    _opened, _end = _post, Calls._peer  # PROC_NULL is refused

    def _entered(self) -> None:
        """Nothing: a real rank's clock goes on by itself."""

    def _inside(self, name: str, asked: str) -> "Slow":
        self._calls += 1
        inside = copy.copy(self)
        inside.comm, inside.tag = self.apart, self._calls % TAGS
        return inside


class SlowRequest(Waits):
    """A send or a receive under way; `into` is the array received, None for an object.

    `out` is when a send leaves its link. `place` holds the message, behind the time of its arrival;
    it is made when the message is there if only its `ends`, source and tag, are known.
    """

    def __init__(self, comm: Slow, real, place, into=None, out: float | None = None, ends=None):
        self.comm, self.real, self.place, self.into, self.out = comm, real, place, into, out
        self.ends, self.done, self.n_bytes = ends, False, 0
        self.status = None  # of a message that MPI is done with

    def Wait(self, status=None) -> bool:
        """Wait until it is done: a send is out, a message may be seen."""
        if not self.done:
            self.landed(wait=True)
            self._finish(status)
        return True

    def Test(self, status=None) -> bool:
        """Whether it is done; then it needs no `Wait`."""
        if not self.done and self.landed() and clock() >= self._due():
            self._finish(status)
        return self.done

    def object(self):
        """The object received; None for an array or a send."""
        is_object = self.out is None and self.into is None
        return pickle.loads(self._content()) if is_object else None

    def landed(self, wait: bool = False) -> bool:
        """Whether MPI is done with it."""
        from mpi4py import MPI

        if self.status is None:
            status, comm = MPI.Status(), self.comm.comm
            if self.real is None:
                message = (comm.Mprobe if wait else comm.Improbe)(*self.ends, status)
                if message is None:
                    return False
                self.place = np.empty(status.Get_count(MPI.BYTE), np.uint8)
                self.real = message.Irecv(self.place)
            if self.real.Wait(status) if wait else self.real.Test(status):
                self.status = status
                self.n_bytes = status.Get_count(MPI.BYTE) - HEAD if self.out is None else 0
        return self.status is not None

    def _due(self) -> float:
        """When it may be done."""
        return self.place[:HEAD].view(float)[0] if self.out is None else self.out

    def _finish(self, status) -> None:
        """Hand the message over when it is due."""
        from mpi4py import MPI

        due = self._due()
        if self.into is not None:
            self.into.reshape(-1).view(np.uint8)[: self.n_bytes] = self._content()
        while clock() < due:
            if self.comm.crowded:  # then others have to spin, too
                os.sched_yield()
        self.done = True
        if self.out is None and status is not None:
            status.Set_source(self.status.Get_source())
            status.Set_tag(self.status.Get_tag())
            status.Set_elements(MPI.BYTE, self.n_bytes)

    def _content(self) -> np.ndarray:
        return self.place[HEAD : HEAD + self.n_bytes]
