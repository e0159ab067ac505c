"""The communicator of a slowed network, with the interface of mpi4py's."""

import pickle

import numpy as np

from cnnlab.ranks.record import Event
from cnnlab.ranks.slow.requests import HEAD, Apart, Beside, Request, Wire, clock
from cnnlab.ranks.virtual.collectives import Collectives, given, taken
from cnnlab.ranks.virtual.link import Link
from cnnlab.ranks.virtual.point_to_point import checked
from cnnlab.ranks.virtual.rounds import rounds, ufunc
from cnnlab.runtime import thread_pool

LARGEST_OBJECT = 1 << 20  # bytes of an object that `irecv` has room for
TAGS = 32768  # as many as every MPI has


class Slow(Collectives):
    """A communicator of a slowed network, made by `network`, with the interface of mpi4py's.

    Its collectives are those of virtual ranks, made of messages. `wire` has a log for
    `trace.record`. What it does not know it refuses by name.
    """

    def __init__(self, comm, link: Link, wire: Wire | None = None, members=None):
        self.comm, self.apart = comm.Dup(), comm.Dup()  # for the program, and for collectives
        self.rank, self.size, self.link = comm.rank, comm.size, link
        self.wire, self.members = wire or Wire(link), members or list(range(comm.size))
        self.inside, self._calls = None, 0
        self.crowded = len(self.members) > thread_pool.usable_cores()

    def __getattr__(self, name):
        raise AttributeError(f"comm.{name}: a slowed network does not know it")

    def Get_rank(self) -> int:
        """This rank's number."""
        return self.rank

    def Get_size(self) -> int:
        """The number of ranks."""
        return self.size

    def Isend(self, array: np.ndarray, dest: int, tag: int = 0) -> Request:
        """Begin to send an array; it may be changed at once."""
        return self._begin(checked("array", array).reshape(-1).view(np.uint8), dest, tag)

    def Irecv(self, array: np.ndarray, source: int | None = None, tag: int | None = None):
        """Begin to receive into an array; it may be read after `Wait`. None: any source or tag."""
        return self._expect(checked("array", array).nbytes, source, tag, array)

    def Send(self, array: np.ndarray, dest: int, tag: int = 0) -> None:
        """Send an array, and wait until it is out."""
        self.Isend(array, dest, tag).Wait()

    def Recv(self, array, source: int | None = None, tag: int | None = None, status=None) -> None:
        """Receive an array."""
        self.Irecv(array, source, tag).Wait(status)

    def Sendrecv(
        self, sent, dest, sendtag=0, received=None, source=None, recvtag=None, status=None
    ) -> None:
        """Send and receive at the same time."""
        into, out = self.Irecv(received, source, recvtag), self.Isend(sent, dest, sendtag)
        into.Wait(status)
        out.Wait()

    def isend(self, thing, dest: int, tag: int = 0) -> Request:
        """Begin to send an object."""
        return self._begin(np.frombuffer(pickle.dumps(thing), np.uint8), dest, tag)

    def irecv(self, source: int | None = None, tag: int | None = None) -> Request:
        """Begin to receive an object of at most LARGEST_OBJECT bytes, which `wait` returns."""
        return self._expect(LARGEST_OBJECT, source, tag)

    def send(self, thing, dest: int, tag: int = 0) -> None:
        """Send an object."""
        self.isend(thing, dest, tag).Wait()

    def recv(self, buf=None, source: int | None = None, tag: int | None = None, status=None):
        """Receive an object of any length."""
        from mpi4py import MPI

        comm, source, tag = self._way(source, tag)
        told, begin = MPI.Status(), clock()
        message = comm.Mprobe(source, tag, told)
        place = np.empty(told.Get_count(MPI.BYTE), np.uint8)
        request = Request(self, message.Irecv(place), place)
        request._landed(wait=True)
        request._finish(begin, status)
        return request._thing()

    def sendrecv(self, thing, dest, sendtag=0, recvbuf=None, source=None, recvtag=None):
        """Send an object, and receive one, at the same time."""
        out = self.isend(thing, dest, sendtag)
        found = self.recv(None, source, recvtag)
        out.Wait()
        return found

    def Iallreduce(self, sent, received: np.ndarray, op="SUM") -> Beside:
        """Begin an allreduce: its first messages are under way, see `Beside` for the others."""
        collective = self._collective("Iallreduce")
        taken(sent, received)
        flat = np.array(given(sent, received)).reshape(-1)
        messages = rounds(self, flat, self._schedule(received), ufunc(op))
        return Beside(collective, messages, flat, received)

    def Split(self, color: int, key: int = 0) -> "Slow":
        """A communicator of the ranks with the same colour, in the order of their keys."""
        part = self.comm.Split(color, key)
        made = Slow(part, self.link, self.wire, part.allgather(self.members[self.rank]))
        part.Free()
        return made

    def Dup(self) -> "Slow":
        """A communicator of the same ranks, whose messages do not meet those of this one."""
        return self.Split(0, self.rank)

    def Free(self) -> None:
        """Wait until MPI is done with what was sent, and give the communicator back."""
        for request in self.wire.pending:
            request.Wait()
        self.comm.Free()
        self.apart.Free()

    def note(self, kind: str, begin: float, end: float, peer: int = -1, n_bytes: int = 0) -> None:
        """Add to the log what this rank did; `peer` is one of this communicator's."""
        me, peer = self.members[self.rank], self.members[peer] if peer >= 0 else peer
        self.wire.log.append(Event(me, kind, begin, end, peer, n_bytes))

    def _begin(self, data: np.ndarray, dest: int, tag: int) -> Request:
        begin = clock()
        self._peer("dest", dest)
        comm, dest, tag = self._way(dest, tag)
        out, seen = self.wire.send(data.size, begin)
        place = np.empty(HEAD + data.size, np.uint8)
        place[:HEAD].view(float)[0], place[HEAD:] = seen, data
        request = Request(self, comm.Isend(place, dest, tag), place, out=out)
        pending = self.wire.pending
        pending[:] = [request, *(one for one in pending if not one._landed())]
        self.note("send", begin, clock(), dest, data.size)
        return request

    def _expect(self, n_bytes: int, source, tag, into=None) -> Request:
        if source is not None and source >= 0:
            self._peer("source", source)
        comm, source, tag = self._way(source, tag)
        place = np.empty(HEAD + n_bytes, np.uint8)
        return Request(self, comm.Irecv(place, source, tag), place, into)

    def _way(self, peer: int | None, tag: int | None) -> tuple:
        """Where a message goes: in a collective, apart from the program's own."""
        from mpi4py import MPI

        peer = MPI.ANY_SOURCE if peer is None else peer
        if self.inside is not None:
            return self.apart, peer, self.inside
        return self.comm, peer, MPI.ANY_TAG if tag is None else tag

    def _peer(self, name: str, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise ValueError(f"{name}: expected a rank from 0 to {self.size - 1}, got {rank}")

    def _collective(self, name: str, root: int | None = None, of=None, op=None) -> Apart:
        if root is not None:
            self._peer("root", root)
        self._calls += 1
        return Apart(self, self._calls % TAGS)

    # What rounds of a schedule are made of: see `rounds`.

    def _send(self, array: np.ndarray, dest: int, tag: int) -> Request:
        return self.Isend(array, dest, tag)

    def _receive(self, array: np.ndarray, source: int, tag: int) -> Request:
        return self.Irecv(array, source, tag)

    def _post(self, request: Request) -> Request:
        return request
