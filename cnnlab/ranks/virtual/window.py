"""Windows: memory of each rank that the others read and write without its help, as in MPI.

A call costs its rank a call; its message is under way until `Flush`, `Unlock` or `Fence`, and only
then is seen what it has fetched. Two ranks at one place at the same time, one of which writes, are
a fault. Of what a rank does to its own part without a window's call, only receives are seen.
"""

from dataclasses import dataclass, field

import numpy as np

from cnnlab.ranks.mpi import name_of
from cnnlab.ranks.virtual.calls import checked, operation
from cnnlab.ranks.virtual.faults import blamed, site, written
from cnnlab.ranks.virtual.messages import Request, raw


@dataclass
class Access:
    """Bytes [first, last) of a part, what a rank does there, and its number once that is over."""

    rank: int
    kind: str
    first: int
    last: int
    where: tuple[str, int]
    over: int | None = None

    def collides(self, other: "Access") -> bool:
        """Whether the two may not come at the same time."""
        apart = self.last <= other.first or other.last <= self.first or self.rank == other.rank
        atomic = self.kind.startswith("Accumulate") and other.kind.startswith("Accumulate")
        return not apart and not atomic and {self.kind, other.kind} != {"Get"}

    def __str__(self) -> str:
        return f"{self.kind} of rank {self.rank} ({written(self.where)})"


@dataclass
class Exposed:
    """A rank's memory in a window, who has locked it, and what was done there."""

    owner: int
    memory: np.ndarray
    disp_unit: int
    holders: dict[int, bool] = field(default_factory=dict)  # rank: whether it wants it alone
    queue: list[tuple[Request, bool]] = field(default_factory=list)
    seen: dict[bool, list] = field(default_factory=lambda: {True: [], False: []})
    accesses: dict[tuple, Access] = field(default_factory=dict)

    def grants(self, alone: bool) -> bool:
        """Whether it may be locked."""
        return not self.holders or not (alone or any(self.holders.values()))


def received(world, rank: int, array: np.ndarray, where: tuple[str, int]) -> None:
    """Note that a rank receives into an array that may be the memory of a window.

    Raises RuntimeError if another rank is there at the same time.
    """
    begin = raw(array).ctypes.data
    for part in [part for parts in world.windows.values() for part in parts.values()]:
        first = begin - part.memory.ctypes.data
        last = min(first + array.nbytes, part.memory.size)
        if (first := max(first, 0)) < last:
            access = Access(rank, "Receive", first, last, where)
            alone(world, part, access)
            access.over = world.history.event(rank)


def alone(world, part: Exposed, access: Access) -> None:
    """Raise RuntimeError if another rank is at the same place at the same time."""
    for other in part.accesses.values():
        known = world.history.known[access.rank, other.rank]
        if access.collides(other) and (other.over is None or other.over > known):
            first, last = max(access.first, other.first), min(access.last, other.last) - 1
            error = RuntimeError(
                f"window: expected one at a time at bytes {first} to {last} of rank {part.owner}, "
                f"got {access} and {other}"
            )
            raise blamed(error, "global concurrency", access.rank, written(access.where))
    part.accesses[access.rank, access.kind, access.first, access.last] = access


class Window:
    """A window of a communicator's ranks, as one of them sees it; called as mpi4py's are."""

    def __init__(self, comm, memory: np.ndarray | None, disp_unit: int = 1):
        self.comm, self.world, self.me = comm, comm.world, comm.me
        memory = raw(checked("memory", np.zeros(0) if memory is None else memory))
        self.world.history.begin()
        group = comm.together(
            "Win", lambda group: self._join(group, Exposed(comm.rank, memory, disp_unit))
        )
        self.key, self.pending = (group, self.me), {}
        self.locked, self.fenced = set(), False
        self.world.resources[self.key] = "a window", self.me, site()

    def _join(self, group: object, part: Exposed) -> None:
        self.parts = self.world.windows.setdefault(group, {})
        self.parts[self.comm.rank] = part

    def Put(self, origin: np.ndarray, target_rank: int, target=None) -> None:
        """Write an array to another rank's part; `target` is where, in units of its window."""
        origin, place = self._reach("Put", origin, target_rank, target)
        place[:] = raw(origin)

    def Get(self, origin: np.ndarray, target_rank: int, target=None) -> None:
        """Read from another rank's part into an array, which has it after `Flush` or `Unlock`."""
        origin, place = self._reach("Get", origin, target_rank, target)
        self._fetch("Get", origin, place.copy(), target_rank)

    def Accumulate(self, origin: np.ndarray, target_rank: int, target=None, op="SUM") -> None:
        """Add an array to another rank's part, each element at once."""
        self._accumulate(origin, target_rank, target, op)

    def Fetch_and_op(
        self, origin, result, target_rank: int, target_disp: int = 0, op="SUM"
    ) -> None:
        """Add one element to another rank's part, and fetch what was there before, at once."""
        result = checked("result", result, writes=True)
        before = self._accumulate(origin, target_rank, target_disp, op)
        self._fetch("Fetch_and_op", result, before, target_rank)

    def Lock(self, rank: int, lock_type="LOCK_EXCLUSIVE", assertion: int = 0) -> None:
        """Begin to reach a rank's part, alone or, with a shared lock, together with others."""
        kind = name_of("lock_type", lock_type, ("LOCK_EXCLUSIVE", "LOCK_SHARED"))
        self._acquire(rank, kind == "LOCK_EXCLUSIVE")

    def Unlock(self, rank: int) -> None:
        """Wait until all that was begun there is done, and let others in."""
        self.Flush(rank)
        self.locked.discard(rank)
        part, seen = self.parts[rank], self.world.history.seen_by(self.me)
        self._in_turn("Unlock", rank)
        part.seen[part.holders.pop(self.me)].append(seen)
        while part.queue and part.grants(part.queue[0][1]):
            request, alone = part.queue.pop(0)
            part.holders[request.rank] = alone
            request.done = self.world.clocks[self.me] + self._latency(rank)
            self.world.wake_for(request)

    def Lock_all(self, assertion: int = 0) -> None:
        """A shared lock of every rank's part."""
        for rank in range(self.comm.size):
            self._acquire(rank, False)

    def Unlock_all(self) -> None:
        """Wait until all that was begun is done, and give the locks back."""
        self._usable()
        if len(self.locked) < self.comm.size:
            raise ValueError("window: expected Lock_all before Unlock_all, got none")
        for rank in range(self.comm.size):
            self.Unlock(rank)

    def Flush(self, rank: int) -> None:
        """Wait until all that this rank has begun at another's part is done."""
        self._in_epoch(rank)
        self._finish(rank)

    def Flush_all(self) -> None:
        """Wait until all that this rank has begun is done."""
        self._usable()
        for rank in list(self.pending):
            self._finish(rank)

    def Fence(self, assertion: int = 0) -> None:
        """All ranks: what came before is done, and what comes after begins."""
        self.Flush_all()
        self.comm.together("Fence")
        self.fenced = True

    def Free(self) -> None:
        """Give the window back, all ranks together."""
        self._usable()
        if self.locked or self.pending:
            raise ValueError("Win.Free: expected Unlock or Fence before, as there was Lock or Put")
        self.comm.together("Win.Free")
        del self.world.resources[self.key]

    def __getattr__(self, name):
        raise AttributeError(f"win.{name}: the virtual world does not know it")

    def _accumulate(self, origin, target_rank: int, target, op) -> np.ndarray:
        name, function = operation(op, checked("origin", origin))
        origin, place = self._reach(f"Accumulate by {name}", origin, target_rank, target)
        before, there = place.copy(), place.view(origin.dtype)
        function(there, origin.reshape(-1), out=there)
        return before

    def _fetch(self, kind: str, array: np.ndarray, value: np.ndarray, rank: int) -> None:
        """Deliver what was fetched once it is done; until then the array is the call's."""
        if self.world.late(self._request(kind, rank)):
            raw(array)[:] = ~raw(array)
        self.pending[rank][-1][2].append((raw(array), raw(array).tobytes(), value))

    def _reach(self, kind: str, origin, rank: int, target) -> tuple[np.ndarray, np.ndarray]:
        """The array, and the bytes of another's part for it, once it is this rank's turn."""
        origin = checked("origin", origin, kind == "Get")
        n_bytes = origin.nbytes
        peer, part = self.comm._peer("target_rank", rank), self.parts[rank]
        self._in_epoch(rank)
        first = part.disp_unit * (target[0] if isinstance(target, list | tuple) else target or 0)
        if not 0 <= first <= first + n_bytes <= part.memory.size:
            raise ValueError(
                f"target: expected a place in {part.memory.size} bytes of rank {rank}, got "
                f"{n_bytes} bytes from {first} on"
            )
        self._in_turn(kind, rank, n_bytes)
        begin, carry = self.world.clocks[self.me], self.world.network.carry
        if kind == "Get":  # what is fetched is sent once it was asked for
            _, done = carry(self.world.busy, peer, self.me, n_bytes, begin + self._latency(rank))
        else:
            _, done = carry(self.world.busy, self.me, peer, n_bytes, begin)
            done += self._latency(rank)  # until this rank knows
        access = Access(self.me, kind, first, first + n_bytes, site())
        alone(self.world, part, access)
        lent = [] if kind == "Get" else [(raw(origin), raw(origin).tobytes(), None)]
        self.pending.setdefault(rank, []).append((done, access, lent))
        return origin, part.memory[first : first + n_bytes]

    def _acquire(self, rank: int, alone: bool) -> None:
        self._usable()
        self.comm._peer("rank", rank)
        if rank in self.locked:
            raise ValueError(f"lock: expected a part that is not locked, got {rank} once more")
        part, request = self.parts[rank], self._in_turn("Lock", rank)
        if part.grants(alone) and not part.queue:
            part.holders[self.me] = alone
            request.done = self.world.clocks[self.me] + 2 * self._latency(rank)
        else:
            part.queue.append((request, alone))
        self.world.wait(request)
        for seen in part.seen[True] + (part.seen[False] if alone else []):
            self.world.history.learn(self.me, seen)
        self.locked.add(rank)

    def _finish(self, rank: int) -> None:
        """Let time pass until what was begun at a part is done, and deliver what was fetched."""
        if pending := self.pending.pop(rank, []):
            over, request = self.world.history.event(self.me), self._request("Flush", rank)
            request.done = max(done for done, *_ in pending)
            self.world.wait(request)
            for _, access, lent in pending:
                access.over = over
                if any(array.tobytes() != kept for array, kept, _ in lent):
                    got = f"got a changed one of {access}"
                    text = f"window: expected an array left alone until Flush or Fence, {got}"
                    place = self.me, written(access.where)
                    raise blamed(ValueError(text), "local concurrency", *place)
            for array, _, value in [each for *_, lent in pending for each in lent]:
                if value is not None:
                    array[:] = value

    def _in_turn(self, kind: str, rank: int, n_bytes: int = 0) -> Request:
        """Charge a call, and let those go on who are behind: what they do comes first."""
        request = self._request(kind, rank)
        self.world.charge(request, n_bytes)
        return request

    def _request(self, kind: str, rank: int) -> Request:
        mine = self.world, self.me, self.comm.members[rank], 0, self.key
        return Request(kind, *mine, members=self.comm.members, where=site())

    def _usable(self) -> None:
        if self.key not in self.world.resources:
            raise ValueError("window: expected one in use, got one that is freed")

    def _in_epoch(self, rank: int) -> None:
        self._usable()
        if rank not in self.locked and not self.fenced:
            raise ValueError(f"window: expected Lock or Fence before, got none for rank {rank}")

    def _latency(self, rank: int) -> float:
        """Until a short message from this rank is at another, in seconds."""
        route = self.world.network.route(self.me, self.comm.members[rank])
        return sum(link.latency for _, link in route)
