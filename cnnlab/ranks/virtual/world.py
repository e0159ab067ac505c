"""The virtual world: many ranks in one process, each with a clock, switched only when they wait.

A rank is a greenlet, a function that can stop in its middle. The one whose clock is furthest behind
goes on, so a run is the same each time; no threads are started.
"""

import heapq
import math
import time
from collections.abc import Callable, Mapping, Sequence

from greenlet import getcurrent, greenlet

from cnnlab.ranks.record import Event, Record
from cnnlab.ranks.virtual import deadlock, faults, leftovers
from cnnlab.ranks.virtual.comm import Comm
from cnnlab.ranks.virtual.faults import Faulty
from cnnlab.ranks.virtual.history import History
from cnnlab.ranks.virtual.link import Link
from cnnlab.ranks.virtual.mail import Mail
from cnnlab.ranks.virtual.messages import Request
from cnnlab.ranks.virtual.pace import Pace
from cnnlab.ranks.virtual.topology import Network, network_of
from cnnlab.runtime.arguments import at_least

SHORTEST_POLL = 1e-7  # seconds: a question takes time, so that an answer comes
PATIENCE = 100_000  # questions in turn, while nobody else can go on


class World:
    """Ranks that run one program, and the time it would take on a network of such links.

    `network` is a `Network`, a link between any two, or a text, see `topology.parse`. `clocks` are
    the ranks' times, `record` is for pictures. `speed` has a factor for each rank, or for some by
    number: computing takes so many times as long; see `Pace` for `jitter` and `seed`. What a rank
    computes between two messages passes as it is `measured` here, or else only by `comm.compute`,
    and then a run takes the same time each time. `waking` are seconds that each measured section is
    longer than on a processor of its own, where no other rank has filled the caches in between.
    """

    def __init__(
        self,
        n_ranks: int,
        network: Network | Link | str | None = None,
        speed: Sequence[float] | Mapping[int, float] = (),
        measured: bool = False,
        jitter: float = 0.0,
        seed: int = 0,
        waking: float = 0.0,
    ):
        at_least("n_ranks", n_ranks, 1)
        self.size, self.network, self.mail = n_ranks, network_of(network, n_ranks), Mail()
        self.link, self.busy = self.network.link, {}  # until when each of its links is
        self.pace, self.waking = Pace(n_ranks, speed, jitter, seed), waking
        self.record = Record(n_ranks, virtual=True, network=str(self.network))
        self.clocks, self.events, self.measured = [0.0] * n_ranks, self.record.events, measured
        self._since: float | None = time.perf_counter()  # when the present rank began to compute
        self.waiting: dict[int, tuple[Request, tuple]] = {}  # rank: for what, and where
        self.ready: list[tuple[float, int]] = []
        self.due: dict[int, float] = {}  # of a rank that is ready: since when, as in that list
        self.ended: set[int] = set()
        self.open: list[dict[Request, None]] = [{} for _ in range(n_ranks)]  # not waited for yet
        self.resources: dict[object, tuple[str, int, tuple]] = {}  # not freed yet: what, whose
        self.calls: dict = {}  # collectives that some have called, and not all
        self.asking: set[int] = set()  # ranks whose question waits for those behind
        self.asked, self.history, self.windows = 0, History(n_ranks), {}
        self.agenda: list[Callable] = []  # what goes on when a message is done
        self.going_on = False

    def run(self, program: Callable, *arguments) -> list:
        """What `program(comm, *arguments)` returns on each rank.

        Raises Deadlock, naming who waits for whom; Faulty, if messages, requests or collectives are
        left over; and whatever a rank raises, with a note that says which rank it was. What stands
        for faults of the program has them as its `faults`.
        """
        self.results, self.hub = [None] * self.size, getcurrent()
        ranks = [greenlet(self._rank) for _ in range(self.size)]
        self.ended.clear()
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
            raise deadlock.found(self.waiting, self.calls, self.ended)
        if left := leftovers.found(self):
            raise Faulty(left)
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
        """What the rank has computed since its last call is over; what follows is the call's."""
        if self.measured and self._since is not None:
            self.compute(rank, max(0.0, time.perf_counter() - self._since - self.waking))
        self._since = None

    def left(self) -> None:
        """A call is over; what follows is the rank's own computing."""
        self._since = time.perf_counter()

    def clock(self, rank: int) -> float:
        """The time of a rank, in seconds."""
        self.entered(rank)
        self.left()
        return self.clocks[rank]

    def _pass(self, rank: int, kind: str, seconds: float, peer: int = -1, n_bytes: int = 0) -> None:
        begin = self.clocks[rank]
        self.clocks[rank] += seconds
        if seconds:
            self.events.append(Event(rank, kind, begin, self.clocks[rank], peer, n_bytes))

    def _rank(self, rank: int, program: Callable, arguments: tuple) -> None:
        try:
            self.results[rank] = program(Comm(self, rank), *arguments)
            self.entered(rank)
        except Exception as error:
            error.faults = faults.of(error, rank)
            error.add_note(f"raised by rank {rank} of {self.size}, in the virtual world")
            raise
        self.ended.add(rank)

    def send(self, request: Request) -> None:
        """Post a send: the message is on its way, or, if it is long, waits for its receiver."""
        rank, n_bytes = request.rank, request.n_bytes
        self.entered(rank)
        request.begin = self.clocks[rank]
        self._pass(rank, "send", self.link.call, request.peer, n_bytes)
        if n_bytes <= self.link.eager:
            self._carry(request, self.clocks[rank])
            self._pass(rank, "send", request.done - self.clocks[rank], request.peer, n_bytes)
        request.posted, request.told = self.clocks[rank], self.history.of(rank)
        if receive := self.mail.post_send(request):
            self._match(request, receive)
        elif request.peer in self.waiting and (
            self.mail.first(request) or self.waiting[request.peer][0].kind == "probe"
        ):
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
            if pair := self._first(request, self.mail.undecided(rank)):
                self._meet(*pair)
        self.clocks[rank] = max(begin, request.done)
        if request.done > begin:
            self.events.append(Event(rank, "wait", begin, request.done, request.peer))
        self.left()

    def test(self, request: Request) -> bool:
        """Whether a request is done now."""
        there = self._ask(request, self.mail.undecided, request.rank)
        while there:
            self._meet(*self.choose(there)[1:])
            there = self._arrived(request, self.mail.undecided(request.rank))
        return request.done is not None and request.done <= self.clocks[request.rank]

    def probe(self, request: Request) -> Request:
        """The first message that a receive would take; let time pass until there is one."""
        rank = request.rank
        self.entered(rank)
        self._pass(rank, "receive", self.link.call)
        while not (found := self._first(request, self.mail.there(request))):
            pass
        self.clocks[rank] = max(self.clocks[rank], found[0].here)
        self.left()
        return found[0]

    def iprobe(self, request: Request) -> Request | None:
        """The first message that a receive would take, if it is there now."""
        there = self._ask(request, self.mail.there, request)
        return self.choose(there)[1] if there else None

    def until(self, at: float) -> float:
        """How long to wait for other messages, where one arrives at a time: no longer than that."""
        return at

    def choose(self, there: list[tuple]) -> tuple:
        """Of messages from several ranks, which counts: the first to arrive."""
        return min(there, key=lambda one: (one[0], one[1].rank))

    def _first(self, request: Request, there: list[tuple]) -> tuple | None:
        """What counts of that which is there; None, if others had to go on until it is known."""
        rank, at = request.rank, None
        if there:
            at = self.until(max(min(one[0] for one in there), self.clocks[rank]))
            if self._next() >= at:
                return self.choose(there)[1:]
        self._sleep(rank, request, at)
        return None

    def _ask(self, request: Request, look: Callable, of: object) -> list[tuple]:
        """What is there, once a question has taken its time, and those have gone on behind it."""
        rank = request.rank
        self.entered(rank)
        self._pass(rank, "wait", max(self.link.call, SHORTEST_POLL))
        self.asking.add(rank)
        self.in_turn(request)
        self.asking.remove(rank)
        there = look(of)
        in_vain = not there and request.done is None and self.due.keys() <= self.asking
        self.asked = self.asked + 1 if in_vain else 0
        if self.asked > PATIENCE:
            self.waiting[rank] = request, faults.site()
            raise deadlock.found(self.waiting, self.calls, self.ended)
        self.left()
        return self._arrived(request, there)

    def _arrived(self, request: Request, there: list[tuple]) -> list[tuple]:
        return [one for one in there if one[0] <= self.clocks[request.rank]]

    def _carry(self, send: Request, begin: float) -> None:
        """The message leaves at `begin`, or when the links on its way are free."""
        send.done, send.arrives = self.network.carry(
            self.busy, send.rank, send.peer, send.n_bytes, begin
        )

    def in_turn(self, request: Request) -> None:
        """Let those go on who are behind the rank of a request."""
        while self._next() < self.clocks[request.rank]:
            self._sleep(request.rank, request, self.clocks[request.rank])

    def charge(self, rank: int, peer: int, n_bytes: int) -> None:
        """Let a rank spend what a call costs."""
        self.entered(rank)
        self._pass(rank, "send", self.link.call, peer, n_bytes)
        self.left()

    def _meet(self, send: Request, receive: Request) -> None:
        """The message goes to a receive that could have had another one."""
        self.mail.pair(send, receive)
        self._match(send, receive)

    def _match(self, send: Request, receive: Request) -> None:
        """The message reaches its receiver: copy it, and say when both are done."""
        if send.arrives is None:
            self._carry(send, max(send.posted, receive.posted))
        receive.take(send)
        receive.done = max(send.arrives, receive.posted)
        self.record.messages.append(send.message(receive))
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
        self.waiting[rank] = request, faults.site() if request in self.open[rank] else request.where
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
