"""The virtual world: many ranks in one process, each with a clock, switched only when they wait.

Ranks are greenlets (functions that can stop in the middle): the one furthest behind goes on.
"""

import copy
import heapq
import math
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from types import MappingProxyType

import numpy as np
from greenlet import getcurrent, greenlet

from cnnlab.ranks.record import Event, Message, Record
from cnnlab.ranks.virtual import calls, faults
from cnnlab.ranks.virtual.faults import Fault, site, written
from cnnlab.ranks.virtual.messages import NULL, Mail, Request, fits
from cnnlab.ranks.virtual.network import Interconnect, Link, Pace, network_of
from cnnlab.ranks.virtual.window import Window, received
from cnnlab.runtime.arguments import at_least

SHORTEST_POLL = 1e-7  # seconds: a question takes time, so that an answer comes
RAISED = "raised by rank"  # begins a note that says which rank raised an error
PATIENCE = 100_000  # vain questions of all ranks together, a tenth as many of each of them


class World:
    """Ranks that run one program, and the time it would take on a network of such links.

    `network` is an `Interconnect`, a link between any two, or a text, see `network.parse`. `clocks`
    are the ranks' times, `record` is for pictures. By `speed`, computing takes so many times as
    long on some ranks; see `Pace` for `jitter` and `seed`. Computing between two messages takes as
    long as is `measured` here, or else only what `comm.compute` says: then each run takes the same.
    """

    def __init__(
        self,
        n_ranks: int,
        network: Interconnect | Link | str | None = None,
        speed: Mapping[int, float] = MappingProxyType({}),
        measured: bool = False,
        jitter: float = 0.0,
        seed: int = 0,
    ):
        at_least("n_ranks", n_ranks, 1)
        self.size, self.network = n_ranks, network_of(network, n_ranks)
        self.link, self.busy = self.network.link, {}  # until when each of its links is
        self.pace = Pace(n_ranks, speed, jitter, seed)
        self.record = Record(n_ranks, virtual=True, network=str(self.network))
        self.clocks, self.events, self.measured = [0.0] * n_ranks, self.record.events, measured
        self.since: float | None = perf_counter()  # when the present rank began to compute

    def run(self, program: Callable, *arguments) -> list:
        """The results of `program(comm, *arguments)`, one for each rank.

        Raises Deadlock, naming who waits for whom; Faulty, if messages, requests or collectives are
        left over; and whatever a rank raises, with a note that says which rank it was. An error
        that stands for faults of the program has them as its `faults`.
        """
        self.mail, self.results, self.hub = Mail(), [None] * self.size, getcurrent()
        self.waiting: dict[int, tuple[Request, tuple]] = {}  # rank: for what, and where
        self.ready: list[tuple[float, int]] = []
        self.due: dict[int, float] = {}  # of a rank that is ready: from when, as in that list
        self.ended: set[int] = set()
        self.open: list[dict[Request, None]] = [{} for _ in range(self.size)]  # not waited for yet
        self.resources: dict[object, tuple[str, int, tuple]] = {}  # not freed yet: what, whose
        self.calls: dict = {}  # collectives that some have called, and not all
        self.asking: set[int] = set()  # ranks whose question waits for those behind
        self.vain, self.asked = {}, {}  # each rank's questions that led nowhere; its clock then
        self.history, self.windows = faults.History(self.size), {}
        self.agenda: list[Callable] = []  # what goes on when a message is done
        self.going_on = False
        ranks = [greenlet(self._rank) for _ in range(self.size)]
        for rank in range(self.size):
            self._wake(rank, 0.0)
        while self.due:
            self._next()
            _, rank = heapq.heappop(self.ready)
            del self.due[rank]
            first = () if ranks[rank] else (rank, program, arguments)  # true once it has begun
            self.left()
            ranks[rank].switch(*first)
        if len(self.ended) < self.size:
            raise faults.deadlock(self)
        if left := faults.leftovers(self):
            raise faults.Faulty(left)
        return self.results

    def late(self, receive: Request) -> bool:
        """Whether the program sees what it receives only after `Wait`."""
        return False

    @property
    def seconds(self) -> float:
        """When the last rank was done."""
        return max(self.clocks)

    def compute(self, rank: int, seconds: float) -> None:
        """Let a rank compute for so long, times its speed's factor."""
        self._pass(rank, "compute", seconds * self.pace.factor(rank))

    def entered(self, rank: int) -> None:
        """A call begins: the rank's own computing since its last call is over."""
        if self.measured and self.since is not None:
            self.compute(rank, perf_counter() - self.since)
        self.since = None

    def left(self) -> None:
        """A call is over: the rank's own computing begins."""
        self.since = perf_counter()

    def _pass(self, rank: int, kind: str, seconds: float, peer: int = -1, n_bytes: int = 0) -> None:
        begin = self.clocks[rank]
        self.clocks[rank] += seconds
        if seconds:
            self.events.append(Event(rank, kind, begin, self.clocks[rank], peer, n_bytes))

    def _rank(self, rank: int, program: Callable, arguments: tuple) -> None:
        getcurrent().comm = comm = Comm(self, rank)
        try:
            self.results[rank] = program(comm, *arguments)
            self.entered(rank)
        except Exception as error:
            error.faults = faults.faults_of(error, rank)
            error.add_note(f"{RAISED} {rank} of {self.size}, in the virtual world")
            raise
        self.ended.add(rank)

    def delivered(self, rank: int, result) -> None:
        """A collective is over: `Replay` notes its result."""

    def send(self, request: Request) -> None:
        """Post a send: the message is on its way, or, if it is long, waits for its receiver."""
        rank, n_bytes = request.rank, request.n_bytes
        self.entered(rank)
        request.begin = self.clocks[rank]
        self._pass(rank, "send", self.link.call, request.peer, n_bytes)
        if request.mode == "b" or (n_bytes <= self.link.eager and request.mode != "s"):
            self._carry(request, self.clocks[rank])
            self._pass(rank, "send", request.done - self.clocks[rank], request.peer, n_bytes)
        request.posted, request.history = self.clocks[rank], self.history.seen_by(rank)
        if receive := self.mail.post_send(request):
            self._match(request, receive)
        elif request.peer in self.waiting and self.mail.first(request):
            self._wake(request.peer, self.until(request.here))

    def receive(self, request: Request) -> None:
        """Post a receive; one from any source is matched when it is waited for."""
        self.entered(request.rank)
        self._pass(request.rank, "receive", self.link.call)
        request.posted = self.clocks[request.rank]
        if send := self.mail.post_receive(request):
            self._match(send, request)

    def wait(self, request: Request) -> None:
        """Let time pass until a request is done."""
        self.entered(request.rank)
        rank, begin = request.rank, self.clocks[request.rank]
        while request.done is None:
            self._decide(request)
        self.clocks[rank] = max(begin, request.done)
        if request.done > begin:
            self.events.append(Event(rank, "wait", begin, request.done, request.peer))
        self.left()

    def test(self, request: Request) -> bool:
        """Whether a request is done now."""
        self._ask(request)
        while there := self._arrived(request):
            self._meet(*self.choose(there)[1:])
        return request.done is not None and request.done <= self.clocks[request.rank]

    def probe(self, request: Request) -> Request | None:
        """The first message that has come and that a receive would take, which is not posted."""
        self._ask(request)
        sent = [send for send in self.mail.sends.get(request.rank, ()) if fits(send, request)]
        there = [send for send in sent if send.here <= self.clocks[request.rank]]
        return min(there, key=lambda send: (send.here, send.rank), default=None)

    def until(self, at: float) -> float:
        """How long to wait for other messages, where one arrives at a time: no longer than that."""
        return at

    def choose(self, there: list[tuple]) -> tuple:
        """Of messages from several ranks, which counts: the first to arrive."""
        return min(there, key=lambda one: (one[0], one[1].rank))

    def _arrived(self, request: Request) -> list[tuple]:
        there = self.mail.undecided(request.rank)
        return [one for one in there if one[0] <= self.clocks[request.rank]]

    def _decide(self, request: Request) -> None:
        """Let the message that counts meet its receive, or others go on until it is known."""
        at = None
        if there := self.mail.undecided(request.rank):
            at = self.until(max(min(one[0] for one in there), self.clocks[request.rank]))
            if self._next() >= at:
                return self._meet(*self.choose(there)[1:])
        return self._sleep(request.rank, request, at)

    def _ask(self, request: Request) -> None:
        """Let a question take its time, and those go on who are behind it."""
        rank = request.rank
        self.entered(rank)
        weight = 0.25 if self.clocks[rank] > self.asked.get(rank, 0.0) else 1  # it has computed
        self._pass(rank, "wait", max(self.link.call, SHORTEST_POLL))
        self.asked[rank] = self.clocks[rank]
        self.asking.add(rank)
        self.in_turn(request)
        self.asking.remove(rank)
        in_vain = request.done is None and not self.mail.undecided(rank)
        in_vain = in_vain and not any(fits(s, request) for s in self.mail.sends.get(rank, ()))
        if not in_vain or not self.due.keys() <= self.asking:
            self.vain.clear()
        self.vain[rank] = self.vain.get(rank, 0) + weight
        each = [self.vain.get(other, 0) for other in (rank, *self.due)]
        if min(each) > PATIENCE / 10 and sum(each) > PATIENCE:
            self.waiting[rank] = request, site()
            raise faults.deadlock(self)
        self.left()

    def _carry(self, send: Request, begin: float) -> None:
        """The message leaves at `begin`, or when the links on its way are free."""
        send.done, send.arrives = self.network.carry(
            self.busy, send.rank, send.peer, send.n_bytes, begin
        )

    def in_turn(self, request: Request) -> None:
        """Let those go on who are behind the rank of a request."""
        while self._next() < self.clocks[request.rank]:
            self._sleep(request.rank, request, self.clocks[request.rank])

    def charge(self, request: Request, n_bytes: int) -> None:
        """Let the time of a call pass on a rank, and those go on who are behind it then."""
        self.entered(request.rank)
        self._pass(request.rank, "send", self.link.call, request.peer, n_bytes)
        self.left()
        self.in_turn(request)

    def _meet(self, send: Request, receive: Request) -> None:
        """The message goes to a receive that could have had another one."""
        self.mail.sends[receive.rank].remove(send)
        self.mail.receives[receive.rank].remove(receive)
        self._match(send, receive)

    def _match(self, send: Request, receive: Request) -> None:
        """The message reaches its receiver: copy it, and say when both are done."""
        if send.arrives is None:
            self._carry(send, max(send.posted, receive.posted))
        receive.take(send)
        if self.windows and receive.buffer is not None:
            received(self, receive.rank, receive.buffer, receive.where)
        receive.done = max(send.arrives, receive.posted)
        ends = send.rank, receive.rank
        self.record.messages.append(Message(*ends, send.n_bytes, send.begin, receive.done))
        for request in (send, receive):
            self.wake_for(request)
            if request.then:
                self.agenda.append(request.then)
        while self.agenda and not self.going_on:
            self.going_on = True
            self.agenda.pop(0)()
            self.going_on = False

    def wake_for(self, request: Request) -> None:
        """Let the rank that waits for a request go on when it is done."""
        if request.rank in self.waiting and self.waiting[request.rank][0] is request:
            self._wake(request.rank, request.done)

    def _sleep(self, rank: int, request: Request, until: float | None) -> None:
        """Let others go on; until a time, or, with None, until this rank is woken."""
        self.waiting[rank] = request, site() if request in self.open[rank] else request.where
        if until is not None:
            self._wake(rank, until)
        self.hub.switch()
        self.waiting.pop(rank, None)

    def _wake(self, rank: int, at: float) -> None:
        at = max(at, self.clocks[rank])
        if rank not in self.due or at < self.due[rank]:
            self.due[rank] = at
            heapq.heappush(self.ready, (at, rank))

    def _next(self) -> float:
        """When the next rank is ready."""
        while self.ready and self.due.get(self.ready[0][1]) != self.ready[0][0]:
            heapq.heappop(self.ready)  # it was woken earlier
        return self.ready[0][0] if self.ready else math.inf


class Comm(calls.Calls):
    """The ranks of a world, as one of them sees them; or some of them, see `Split`."""

    def __init__(self, world: World, rank: int, members: tuple[int, ...] = (), group: object = 0):
        self.world, self.members, self.group = world, members or tuple(range(world.size)), group
        self.me = rank
        self.rank, self.size = self.members.index(rank), len(self.members)
        self._calls, self._freed = 0, None

    def compute(self, seconds: float) -> None:
        """Let this rank compute for so many virtual seconds."""
        self.world.compute(self.me, seconds)

    def window(self, memory, disp_unit: int = 1) -> Window:
        """A window on an array of each rank, or None, see `mpi.Win.Create`."""
        return Window(self, memory, disp_unit)

    def clock(self) -> float:
        """The time of this rank, in virtual seconds."""
        self.world.entered(self.me)
        self.world.left()
        return self.world.clocks[self.me]

    def Split(self, color: int, key: int = 0) -> "Comm":
        """A communicator of the ranks with the same colour, in the order of their keys."""
        if color < 0:  # MPI's own UNDEFINED is -32766 or so
            raise ValueError(f"color: expected at least 0, as nobody stays out here, got {color}")
        asked = sorted(self.allgather((color, key, self.me)), key=lambda one: one[1:])
        members = tuple(rank for c, _, rank in asked if c == color)
        half = type(self)(self.world, self.me, members, (self.group, self._calls, color))
        self.world.resources[half.group, self.me] = "a communicator of Split", self.me, site()
        return half

    def Dup(self) -> "Comm":
        """A communicator of the same ranks, whose messages do not meet those of this one."""
        return self.Split(0, self.rank)

    def Abort(self, errorcode: int = 0) -> None:
        """End the run of all ranks: raises RuntimeError."""
        raise RuntimeError(f"comm.Abort({errorcode}) was called on rank {self.rank}")

    def Free(self) -> None:
        """Give a communicator of `Split` back; it is of no use from then on."""
        self._usable()
        if (self.group, self.me) not in self.world.resources:
            raise ValueError("comm: expected a communicator of Split, got that of all ranks")
        del self.world.resources[self.group, self.me]
        self._freed = site()

    def together(self, name: str, begin: Callable = id) -> object:
        """Wait until all ranks make this call; the group of its messages, which `begin` gets."""
        self._entered()
        inside = self._inside(name, name)
        begin(inside.group)
        calls.finish(calls.barrier(inside))
        return inside.group

    def _usable(self) -> None:
        if self._freed:
            where = written(self._freed)
            raise ValueError(f"comm: expected a communicator, got one freed at {where}")

    def _entered(self) -> None:
        self.world.entered(self.me)
        self._usable()

    def _inside(self, name: str, asked: str) -> "Comm":
        """This communicator for the messages of a collective; all ranks must call the same one."""
        self._calls += 1
        inside, calls, where = copy.copy(self), self.world.calls, site()
        inside.group = self.group, self._calls, "collective"
        called = calls.setdefault(inside.group, Called(name, asked, where, self.members, []))
        called.ranks.append(self.me)
        if called.asked != asked:
            first = f"{called.asked} as on rank {called.ranks[0]}"
            error = ValueError(f"collectives: expected {first}, got {asked} on rank {self.me}")
            kind = "parameter matching" if called.name == name else "call matching"
            raise faults.blamed(error, kind, self.me, written(where))
        if len(called.ranks) == self.size:
            del calls[inside.group]
        self.world.left()  # what collectives compute between their messages counts
        return inside

    def _fills(self, array: np.ndarray) -> None:
        received(self.world, self.me, array, site())

    def _send(self, what, dest: int, tag: int, pickled: bool = False, mode: str = "") -> Request:
        self._entered()
        buffer = None if pickled else calls.checked("buf", what)
        data = pickle.dumps(what) if pickled else buffer.tobytes()
        ends = self._end("dest", dest), self._tag(tag, False)
        return self._request("send", *ends, data, buffer, mode)

    def _receive(self, buf, source: int, tag: int, pickled: bool = False) -> Request:
        self._entered()
        if pickled and buf is not None:
            raise TypeError(f"buf: expected None, got {type(buf).__name__}; name the source")
        buffer = None if pickled else calls.checked("buf", buf, writes=True)
        return self._request("receive", self._source(source), self._tag(tag, True), None, buffer)

    def _request(self, kind: str, peer: int, tag: int, data, buffer, mode: str = "") -> Request:
        mine = self.world, self.me, peer, tag, self.group
        return Request(kind, *mine, data, buffer, self.members, site(), mode=mode)

    def _post(self, request: Request) -> Request:
        """Begin with a message, unless one under way has its buffer."""
        for other in self.world.open[self.me]:
            request.apart(other)
        if request.peer == NULL:  # done at once, and nothing is received
            request.done, request.data = self.world.clocks[self.me], b""
        else:
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


@dataclass
class Called:
    """A collective that some ranks have called: which, the first of them where, and who all."""

    name: str
    asked: str
    where: tuple[str, int]
    members: tuple[int, ...]
    ranks: list[int]

    def fault(self) -> Fault:
        """That not all have called it."""
        missing = next(rank for rank in self.members if rank not in self.ranks)
        text = f"{self.asked}: expected on all {len(self.members)} ranks, never on rank {missing}"
        return Fault("call matching", self.ranks[0], written(self.where), text)
