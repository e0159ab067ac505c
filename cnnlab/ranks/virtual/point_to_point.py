"""Messages from one virtual rank to another, called as mpi4py's are.

Methods with a capital send arrays, those without pickle objects.
"""

import pickle

import numpy as np

from cnnlab.ranks import mpi
from cnnlab.ranks.virtual.faults import site, written
from cnnlab.ranks.virtual.messages import ANY, Request

TAGS = 32768  # as many as every MPI has
NUMBERS = "biufc"  # kinds of dtype: bool, whole, real and complex


class PointToPoint:
    """The part of a communicator that sends and receives."""

    def Isend(self, array: np.ndarray, dest: int, tag: int = 0) -> Request:
        """Begin to send an array; it may be changed after `Wait`."""
        return self._opened(self._send(array, dest, tag))

    def Irecv(self, array: np.ndarray, source: int = ANY, tag: int = ANY) -> Request:
        """Begin to receive into an array; it may be read after `Wait`."""
        return self._opened(self._receive(array, source, tag))

    def Send(self, array: np.ndarray, dest: int, tag: int = 0) -> None:
        """Send an array; a long one waits for its receiver."""
        self._post(self._send(array, dest, tag)).Wait()

    def Recv(self, array: np.ndarray, source: int = ANY, tag: int = ANY, status=None) -> None:
        """Receive an array."""
        self._post(self._receive(array, source, tag)).Wait(status)

    def Sendrecv(
        self,
        sent: np.ndarray,
        dest: int,
        sendtag: int = 0,
        received: np.ndarray | None = None,
        source: int = ANY,
        recvtag: int = ANY,
        status=None,
    ) -> None:
        """Send and receive at the same time, from and to two arrays."""
        into, out = self._receive(received, source, recvtag), self._send(sent, dest, sendtag)
        apart(out, into)
        self._post(into)
        self._post(out)
        into.Wait(status)
        out.Wait()

    def isend(self, thing, dest: int, tag: int = 0) -> Request:
        """Begin to send an object."""
        return self._opened(self._send_thing(thing, dest, tag))

    def irecv(self, buf=None, source: int = ANY, tag: int = ANY) -> Request:
        """Begin to receive an object, which `wait` returns."""
        return self._opened(self._receive_thing(buf, source, tag))

    def send(self, thing, dest: int, tag: int = 0) -> None:
        """Send an object."""
        self._post(self._send_thing(thing, dest, tag)).Wait()

    def recv(self, buf=None, source: int = ANY, tag: int = ANY, status=None):
        """Receive an object."""
        return self._post(self._receive_thing(buf, source, tag)).wait(status)

    def sendrecv(
        self, thing, dest: int, sendtag=0, recvbuf=None, source=ANY, recvtag=ANY, status=None
    ):
        """Send an object and receive one at the same time."""
        into = self._post(self._receive_thing(recvbuf, source, recvtag))
        out = self._post(self._send_thing(thing, dest, sendtag))
        received = into.wait(status)
        out.Wait()
        return received

    def Probe(self, source: int = ANY, tag: int = ANY, status=None) -> bool:
        """Wait until there is such a message, and say which; it is still to be received."""
        return self._probe(source, tag, status, self.world.probe)

    def Iprobe(self, source: int = ANY, tag: int = ANY, status=None) -> bool:
        """Whether there is such a message now."""
        return self._probe(source, tag, status, self.world.iprobe)

    probe, iprobe = Probe, Iprobe

    def _probe(self, source, tag, status, ask) -> bool:
        request = self._receive_thing(None, source, tag)
        request.kind = "probe"
        request.taken = ask(request)
        if request.taken and status is not None:
            request.tell(status)
        return bool(request.taken)

    def _send(self, array: np.ndarray, dest: int, tag: int) -> Request:
        self.world.entered(self.me)
        data = checked("array", array).tobytes()
        return self._request("send", self._peer("dest", dest), tag, data=data, buffer=array)

    def _send_thing(self, thing, dest: int, tag: int) -> Request:
        self.world.entered(self.me)
        return self._request("send", self._peer("dest", dest), tag, data=pickle.dumps(thing))

    def _receive(self, into: np.ndarray, source: int, tag: int) -> Request:
        self.world.entered(self.me)
        if not checked("array", into).flags.writeable:
            raise ValueError("array: expected a writeable array, got a read-only one")
        return self._receive_thing(None, source, tag, buffer=into)

    def _receive_thing(self, buf, source: int, tag: int, **more) -> Request:
        if buf is not None:
            raise TypeError(f"buf: expected None, got {type(buf).__name__}; name the source")
        peer = ANY if is_any(source, mpi.ANY_SOURCE) else self._peer("source", source)
        return self._request("receive", peer, tag, **more)

    def _request(self, kind: str, peer: int, tag: int, **more) -> Request:
        self._usable()
        known = is_whole(tag) and 0 <= tag < TAGS
        if kind == "receive" and is_any(tag, mpi.ANY_TAG):
            tag = ANY
        elif not known:
            raise ValueError(f"tag: expected a whole number from 0 to {TAGS - 1}, got {tag!r}")
        where, mine = site(), (self.world, self.me, peer, tag, self.group)
        return Request(kind, *mine, members=self.members, where=where, **more)

    def _post(self, request: Request) -> Request:
        """Begin with a message, unless one under way has its buffer."""
        for other in self.world.open[self.me]:
            apart(request, other)
        (self.world.send if request.kind == "send" else self.world.receive)(request)
        return request

    def _opened(self, request: Request) -> Request:
        """Begin with a message that the program waits for itself."""
        if request.buffer is not None:
            request.lend()
        self._post(request)
        self.world.open[self.me][request] = None
        self.world.left()
        return request

    def _peer(self, name: str, rank: int) -> int:
        if not (is_whole(rank) and 0 <= rank < self.size):
            raise ValueError(f"{name}: expected a rank from 0 to {self.size - 1}, got {rank!r}")
        return self.members[rank]


def checked(name: str, array) -> np.ndarray:
    """The array, if it is C-contiguous and of numbers; TypeError or ValueError if not."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: expected a NumPy array, got {type(array).__name__}")
    if array.dtype.kind not in NUMBERS:
        raise TypeError(f"{name}: expected an array of numbers, got dtype {array.dtype}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: expected a C-contiguous array, got strides {array.strides}")
    return array


def apart(one: Request, other: Request) -> None:
    """Raise ValueError if one of two messages goes to a place that the other one uses."""
    arrays = one.buffer, other.buffer
    receives = "receive" in (one.kind, other.kind)
    if receives and arrays[0] is not None is not arrays[1] and np.may_share_memory(*arrays):
        where = written(other.where)
        text = f"expected a buffer of its own, got that of a {other.kind} under way since {where}"
        raise one.fault(ValueError(f"{one.kind}: {text}"), "local concurrency")


def is_any(number, by_mpi: int) -> bool:
    """Whether it stands for any source, or any tag: here, or by the MPI that runs beside this."""
    return is_whole(number) and number in (ANY, by_mpi)


def is_whole(number) -> bool:
    """Whether it is a whole number, Python's or NumPy's."""
    return type(number) is int or isinstance(number, np.integer)
