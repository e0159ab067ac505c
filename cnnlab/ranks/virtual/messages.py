"""Messages between virtual ranks, as requests."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cnnlab.ranks.record import Message
from cnnlab.ranks.virtual.faults import Fault, blamed, site, written

ANY = -1  # any source, any tag: as in MPI, where the numbers may differ


class Status:
    """Of a message that was received or is there: its source, tag and length."""

    source = tag = ANY
    n_bytes, itemsize = 0, 1

    def Get_source(self) -> int:
        """The rank that sent it."""
        return self.source

    def Get_tag(self) -> int:
        """Its tag."""
        return self.tag

    def Get_count(self, datatype=None) -> int:
        """How many elements it has: of its own type; with a type, how many of that."""
        size = self.itemsize if datatype is None else np.dtype(datatype).itemsize
        return self.n_bytes // size


@dataclass(eq=False)
class Request:
    """A send or a receive: of a rank, with a peer; `done` is when it is complete, in seconds.

    `buffer` is the array that is sent or received, None for a pickled object. `lent` says that the
    program waits itself, and must not touch the buffer until then; `kept` is what it has to hold.
    """

    kind: str
    world: object
    rank: int
    peer: int
    tag: int
    group: object  # messages of different communicators do not meet
    data: object = None  # bytes that are sent
    buffer: np.ndarray | None = None
    begin: float = 0.0  # of the call that posts it
    posted: float = 0.0
    arrives: float | None = None
    done: float | None = None
    source: int = field(default=ANY)
    lent: bool = False
    kept: bytes = b""
    late: bool = False  # the message is seen only after `Wait`
    members: tuple[int, ...] = ()
    where: tuple[str, int] = ("", 0)
    waited: tuple[str, int] | None = None
    taken: object = None  # by a receive: the send
    before: bytes = b""  # of a late one: what the buffer held
    told: np.ndarray | None = None  # what its sender has heard of, see `History`
    then: Callable | None = None  # what goes on when it is done

    @property
    def any_source(self) -> bool:
        """Whether it takes, or asks for, a message from anybody."""
        return self.kind != "send" and self.peer == ANY

    @property
    def dtype(self):
        """Of the elements; None for an object."""
        return None if self.buffer is None else self.buffer.dtype

    @property
    def n_bytes(self) -> int:
        """The length of the message that is sent."""
        return len(self.data)

    @property
    def here(self) -> float:
        """When the receiver sees that it is sent, in seconds."""
        return self.posted if self.arrives is None else self.arrives

    def Wait(self, status=None) -> bool:
        """Wait until it is done."""
        if self.waited:
            text = f"expected one wait for each request, got one more after {written(self.waited)}"
            raise self.fault(ValueError(f"request: {text}"), "request lifecycle", site())
        self.world.wait(self)
        self.finish(status)
        return True

    def Test(self, status=None) -> bool:
        """Whether it is done, and then it needs no `Wait`."""
        if not self.waited and self.world.test(self):
            self.finish(status)
        return bool(self.waited)

    def wait(self, status=None):
        """Wait until it is done; the object received, if it is one."""
        self.Wait(status)
        return self.thing()

    def test(self, status=None):
        """Whether it is done, and the object received."""
        done = self.Test(status)
        return done, self.thing() if done else None

    @staticmethod
    def Waitall(requests, statuses=None) -> bool:
        """Wait for all of them."""
        for request, status in zip(requests, statuses or [None] * len(requests), strict=True):
            request.Wait(status)
        return True

    @staticmethod
    def waitall(requests) -> list:
        """Wait for all of them; the objects received."""
        return [request.wait() for request in requests]

    def __getattr__(self, name):
        raise AttributeError(f"request.{name}: the virtual world does not know it")

    def thing(self):
        """The object received; None for an array or a send."""
        return pickle.loads(self.data) if self.kind == "receive" and self.buffer is None else None

    def finish(self, status=None) -> None:
        """The program may use the buffer again, and has not done so yet."""
        self.untouched()
        if self.late:
            self.deliver()
        if self.taken:
            self.world.history.learn(self.rank, self.taken.told)
        self.waited, opened = self.where, self.world.open[self.rank]
        if self in opened:  # else the call has waited itself
            del opened[self]
            self.waited = site()
        if status is not None and self.kind != "send":
            self.tell(status)
        self.world.left()

    def tell(self, status) -> None:
        """Fill in a status, this module's or MPI's."""
        status.source, status.tag = self.members.index(self.taken.rank), self.taken.tag
        status.n_bytes = self.taken.n_bytes
        status.itemsize = self.taken.dtype.itemsize if self.taken.dtype else 1

    def lend(self) -> None:
        """From now on until `Wait`, the buffer is the message's."""
        self.lent, self.kept = True, self.data if self.kind == "send" else self.buffer.tobytes()
        if self.kind == "receive" and self.world.late(self):
            self.late, self.before = True, self.kept
            place = raw(self.buffer)
            place[:] = ~place  # what it holds until then is nobody's business
            self.kept = self.buffer.tobytes()

    def untouched(self) -> None:
        """Raise ValueError if the program has changed the buffer of a message under way."""
        if self.lent and self.buffer.tobytes() != self.kept:
            text = f"expected a buffer left alone until Wait, got a changed one of this {self.kind}"
            raise self.fault(ValueError(f"request: {text}"), "local concurrency")

    def take(self, send: "Request") -> None:
        """Take over the message of a send. Raises ValueError if it is not for such a place."""
        self.source, self.taken = send.rank, send
        if self.dtype != send.dtype:
            expected, got = (str(r.dtype or "an object") for r in (self, send))
            text = f"receive: expected {expected}, got {got} from rank {send.rank}"
            error = ValueError(f"{text}, sent at {written(send.where)}")
            raise self.fault(error, "parameter matching")
        if self.buffer is not None and send.n_bytes > self.buffer.nbytes:
            error = ValueError(
                f"receive: expected at most {self.buffer.nbytes} bytes from rank {send.rank}, got "
                f"{send.n_bytes}: the message would be truncated"
            )
            raise self.fault(error, "parameter matching")
        self.untouched()
        self.data = send.data
        if not self.late and self.buffer is not None:
            self.deliver()

    def deliver(self) -> None:
        """Copy the message to its place."""
        place = raw(self.buffer)
        if self.late:
            place[:] = np.frombuffer(self.before, np.uint8)
        place[: len(self.data)] = np.frombuffer(self.data, np.uint8)
        if self.lent:
            self.kept = self.buffer.tobytes()

    def message(self, receive: "Request") -> Message:
        """The message of this send to that receive, for pictures."""
        return Message(self.rank, receive.rank, self.n_bytes, self.begin, receive.done)

    def blame(self, kind: str, text: str) -> Fault:
        """A fault of this request."""
        return Fault(kind, self.rank, written(self.where), text)

    def fault(self, error: Exception, kind: str, where: tuple | None = None) -> Exception:
        """The error, blamed on the rank and line of this request."""
        return blamed(error, kind, self.rank, written(where or self.where))


def raw(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, as a view."""
    return array.reshape(-1).view(np.uint8)
