"""Messages between virtual ranks: sends and receives as requests, and how they meet."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cnnlab.ranks import mpi
from cnnlab.ranks.virtual.faults import blamed, site, written

ANY, NULL = -1, -2  # a request's peer or tag: any source, any tag; a peer that is no rank


class Status:
    """The source, tag and length of a message that was received, or that is there."""

    source = tag = ANY
    n_bytes, itemsize = 0, 1

    def Get_source(self) -> int:
        """The rank that sent it."""
        return self.source

    def Get_tag(self) -> int:
        """The tag."""
        return self.tag

    def Get_count(self, datatype=None) -> int:
        """How many elements it has: of its own type; with a type, how many of that."""
        kind = mpi.dtype_of(datatype) or datatype
        return self.n_bytes // (self.itemsize if kind is None else np.dtype(kind).itemsize)


mpi.INSTEAD["Status"] = Status  # that of virtual ranks


class Waits:
    """A request that is over, and calls that are made of `Wait`, `Test` and `object`."""

    waited = True

    def Wait(self, status=None) -> bool:
        """Whether it is done, if need be after a while."""
        return True

    Test = Wait

    def __getattr__(self, name):
        raise AttributeError(f"request.{name}: the virtual world does not know it")

    def wait(self, status=None):
        """Wait until it is done; the object received, if it is one that nobody has had."""
        before = self.waited
        return self.Wait(status) and (None if before else self.object())

    def test(self, status=None):
        """Whether it is done, and the object received, if it is one that nobody has had."""
        before, done = self.waited, self.Test(status)
        return done, self.object() if done and not before else None

    @staticmethod
    def Waitall(requests, statuses=None) -> bool:
        """Wait for all of them."""
        for request, status in zip(requests, statuses or [None] * len(requests), strict=True):
            request.Wait(status)
        return True

    @staticmethod
    def Testall(requests, statuses=None) -> bool:
        """Whether all of them are done."""
        statuses = statuses or [None] * len(requests)
        return all([r.Test(s) for r, s in zip(requests, statuses, strict=True)])

    @staticmethod
    def Waitany(requests, status=None) -> int:
        """Wait until one is done that was not before; its place in the list, or UNDEFINED."""
        left = [(k, request) for k, request in enumerate(requests) if not request.waited]
        while left:
            for k, request in left:
                if request.Test(status):
                    return k
        return mpi.UNDEFINED

    @staticmethod
    def waitany(requests, status=None) -> tuple:
        """Wait until one is done that was not before; its place, and the object received."""
        k = Waits.Waitany(requests, status)
        return k, None if k == mpi.UNDEFINED else requests[k].object()

    @staticmethod
    def waitall(requests) -> list:
        """Wait for all of them; the objects received."""
        return [request.wait() for request in requests]


@dataclass(eq=False)
class Request(Waits):
    """A send or a receive: of a rank, with a peer; `done` is when it is complete, in seconds.

    `buffer` is the array that is sent or received, None for a pickled object. If the program waits
    itself, it must not touch the buffer until then: `kept` is what the buffer has to hold.
    """

    kind: str
    world: object
    rank: int
    peer: int
    tag: int
    group: object  # messages of different communicators do not meet
    data: object = None  # bytes that are sent
    buffer: np.ndarray | None = None
    members: tuple[int, ...] = ()
    where: tuple[str, int] = ("", 0)
    begin: float = 0.0  # of the call that posts it
    posted: float = 0.0
    arrives: float | None = None
    done: float | None = None
    kept: bytes | None = None
    before: bytes | None = None  # if the message is seen only after `Wait`: what the buffer held
    waited: bool = False
    taken: object = None  # by a receive: the send
    history: np.ndarray | None = None  # the events that its sender knows of, see `History`
    then: Callable | None = None  # goes on when it is done
    mode: str = ""  # of a send: "s" waits for its receiver, "b" for nobody

    @property
    def any_source(self) -> bool:
        """Whether it takes a message from anybody."""
        return self.peer == ANY

    @property
    def content(self) -> np.dtype | str:
        """The dtype of its elements, or "an object"."""
        return "an object" if self.buffer is None else self.buffer.dtype

    @property
    def n_bytes(self) -> int:
        """The length of the message that is sent."""
        return len(self.data)

    @property
    def here(self) -> float:
        """When the receiver sees that it is sent, in seconds."""
        return self.posted if self.arrives is None else self.arrives

    def Wait(self, status=None) -> bool:
        """Wait until it is done, if it is not over already."""
        if not self.waited:
            self.world.wait(self)
            self.finish(status)
        return True

    def Test(self, status=None) -> bool:
        """Whether it is done, and then it needs no `Wait`."""
        if not self.waited and self.world.test(self):
            self.finish(status)
        return self.waited

    def object(self):
        """The object received; None for an array or a send."""
        is_object = self.kind == "receive" and self.buffer is None and self.data
        return pickle.loads(self.data) if is_object else None

    def finish(self, status=None) -> None:
        """The program may use the buffer again, and has not done so yet."""
        self.untouched()
        if self.before is not None:
            self.deliver()
        if self.taken:
            self.world.history.learn(self.rank, self.taken.history)
        self.waited = True
        self.world.open[self.rank].pop(self, None)
        if status is not None and self.kind == "receive":
            self.describe(status)
        self.world.left()

    def describe(self, status) -> None:
        """Fill in a status, this module's or MPI's."""
        if send := self.taken:
            status.source, status.tag = self.members.index(send.rank), send.tag
        else:  # from no rank at all
            status.source, status.tag = mpi.PROC_NULL, mpi.ANY_TAG
        n_bytes = send.n_bytes if send else 0
        if isinstance(status, Status):
            status.itemsize = send.buffer.itemsize if send and send.buffer is not None else 1
            status.n_bytes = n_bytes
        else:
            status.Set_elements(mpi.BYTE, n_bytes)

    def lend(self) -> None:
        """From now on until `Wait`, the buffer is the message's."""
        self.kept = self.data if self.kind == "send" else self.buffer.tobytes()
        if self.kind == "receive" and self.world.late(self):
            self.before, place = self.kept, raw(self.buffer)
            place[:] = ~place  # what it holds until then is nobody's business
            self.kept = self.buffer.tobytes()

    def untouched(self) -> None:
        """Raise ValueError if the program has changed the buffer of a message under way."""
        if self.kept is not None and self.buffer.tobytes() != self.kept:
            raise self.touched()

    def touched(self) -> Exception:
        """The error that the program has changed a buffer under way."""
        text = f"expected a buffer left alone until Wait, got a changed one of this {self.kind}"
        return self.fault(f"request: {text}", "local concurrency")

    def apart(self, other: "Request") -> None:
        """Raise ValueError if one of two messages goes to a place that the other one uses."""
        arrays = self.buffer, other.buffer
        receives = "receive" in (self.kind, other.kind)
        if receives and arrays[0] is not None is not arrays[1] and np.may_share_memory(*arrays):
            got = f"got that of a {other.kind} under way since {written(other.where)}"
            text = f"{self.kind}: expected a buffer of its own, {got}"
            raise self.fault(text, "local concurrency")

    def take(self, send: "Request") -> None:
        """Take over the message of a send. Raises ValueError if it is not for such a place."""
        self.taken, source = send, f"from rank {send.rank}"
        objects = self.buffer is None, send.buffer is None
        if objects[0] != objects[1] or self.content != send.content:
            got = f"got {send.content} {source}, sent at {written(send.where)}"
            raise self.fault(f"receive: expected {self.content}, {got}", "parameter matching")
        if self.buffer is not None and send.n_bytes > self.buffer.nbytes:
            text = f"receive: expected at most {self.buffer.nbytes} bytes {source}, got"
            text += f" {send.n_bytes}: the message would be truncated"
            raise self.fault(text, "parameter matching")
        self.untouched()
        self.data = send.data
        if self.before is None and self.buffer is not None:
            self.deliver()

    def deliver(self) -> None:
        """Copy the message to its place."""
        place = raw(self.buffer)
        if self.before is not None:
            place[:] = np.frombuffer(self.before, np.uint8)
        place[: len(self.data)] = np.frombuffer(self.data, np.uint8)
        if self.kept is not None:
            self.kept = self.buffer.tobytes()

    def fault(self, text: str, kind: str) -> Exception:
        """A ValueError, blamed on the rank and line of this request."""
        return blamed(ValueError(text), kind, self.rank, written(self.where))


class Begun(Request):
    """A collective that goes on while its rank computes, as if the network did it alone.

    Its calls and additions take none of the rank's time. Its rounds work on copies: `arrays` has
    each array by its name, with its copy. The program must leave them alone until `Wait`.
    """

    def __init__(self, name: str, comm, arrays: dict[str, tuple], filled, rounds: Iterator):
        mine = comm.world, comm.me, comm.me, 0, comm.group
        super().__init__(name, *mine, None, filled, comm.members, site(), before=b"")
        self.rounds, self.round, self.receives, self.arrays = rounds, [], [], arrays
        if filled is not None and comm.world.late(self):
            raw(filled)[:] = ~raw(filled)
        self.kept = {name: array.tobytes() for name, (array, _) in arrays.items()}
        self.now = comm.world.clocks[comm.me]
        comm.world.open[comm.me][self] = None
        self.go_on()
        comm.world.left()

    def go_on(self) -> None:
        """Post the messages of the next rounds, until some are under way; else it is done."""
        while all(request.done is not None for request in self.round):
            self.now = max([self.now, *(request.done for request in self.round)])
            self.round = self.aside()
            if self.round is None:
                return self.end()
            for request in self.round:
                if request.kind == "receive":
                    self.receives.append(request)
                request.then, request.where = self.go_on, self.where
                self.peer = request.peer if request.done is None else self.peer
        return None

    def aside(self) -> list[Request] | None:
        """The next round, posted at the time of this collective; None after the last."""
        world, clocks = self.world, self.world.clocks
        kept = clocks[self.rank], world.since, world.measured
        clocks[self.rank], world.measured = self.now, False
        posted = next(self.rounds, None)
        self.now = clocks[self.rank]
        clocks[self.rank], world.since, world.measured = kept
        return posted

    def end(self) -> None:
        """All rounds are done."""
        self.round, self.done, self.taken = [], self.now, self
        heard = [r.taken.history for r in self.receives if r.taken.history is not None]
        self.history = np.max(heard, axis=0) if heard else None
        self.world.wake_for(self)

    def untouched(self) -> None:
        """Raise ValueError if the program has changed an array of it that is still under way."""
        if any(array.tobytes() != self.kept[name] for name, (array, _) in self.arrays.items()):
            raise self.touched()

    def deliver(self) -> None:
        """Copy the results to their places."""
        for array, result in self.arrays.values():
            if array is self.buffer:
                array[...] = result
        self.world.delivered(self.rank, self.buffer)


class Mail:
    """Sends and receives that have not met yet, in the order in which they were posted.

    Messages of one rank to another do not overtake each other, and a message goes to the receive
    that was posted first. A receive from any source is undecided until it is known which message
    arrives first, and so is each receive after it that competes with it.
    """

    def __init__(self):
        self.sends: dict[int, list[Request]] = {}  # by receiver
        self.receives: dict[int, list[Request]] = {}

    def post_send(self, send: Request) -> Request | None:
        """The receive that waits for this send; else it is kept until one comes."""
        receive = self.first(send)
        if receive and not receive.any_source:
            self.receives[send.peer].remove(receive)
            return receive
        self.sends.setdefault(send.peer, []).append(send)
        return None

    def post_receive(self, receive: Request) -> Request | None:
        """The send that is there for this receive; else it is kept until one comes."""
        if not receive.any_source:
            for send in self.sends.get(receive.rank, ()):
                if fits(send, receive):
                    if self.first(send):
                        break
                    self.sends[receive.rank].remove(send)
                    return send
        self.receives.setdefault(receive.rank, []).append(receive)
        return None

    def first(self, send: Request) -> Request | None:
        """The receive that a send would go to."""
        for receive in self.receives.get(send.peer, ()):
            if fits(send, receive):
                return receive
        return None

    def undecided(self, rank: int) -> list[tuple[float, Request, Request]]:
        """When they arrive, and which: for each source, its next message and the receive for it.

        Only those are undecided whose receive was posted already; all others have met.
        """
        heads: dict[int, tuple[float, Request, Request]] = {}
        for send in self.sends.get(rank, ()) if self.receives.get(rank) else ():
            if send.rank not in heads and (receive := self.first(send)):
                heads[send.rank] = send.here, send, receive
        return list(heads.values())


def fits(send: Request, receive: Request) -> bool:
    """Whether a receive takes a send, by communicator, source and tag."""
    return (
        send.group == receive.group
        and receive.peer in (ANY, send.rank)
        and receive.tag in (ANY, send.tag)
    )


def raw(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, as a view."""
    return array.reshape(-1).view(np.uint8)
