"""The memory accesses of a kernel: faults, coalescing, bank conflicts and traffic."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

# The least that a GPU fetches, in bytes (CUDA C++ Best Practices Guide, "Coalesced Access").
SECTOR = 32
WARP = 32  # threads
BANKS = 32  # of shared memory, each 4 bytes wide
WRITE, ATOMIC = 1, 2


def joined(*columns: np.ndarray) -> np.ndarray:
    """One integer key per row of the columns: equal for equal rows, and in the rows' order."""
    key, extent = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low = int(column.min(initial=0))
        size = int(column.max(initial=0)) - low + 1
        if extent * size >= 2**63:
            found, key = np.unique(key, return_inverse=True)
            extent = len(found)
        key, extent = key * size + (column - low), extent * size
    return key


def times(n: int) -> str:
    """A count of accesses, in words."""
    return "1 access" if n == 1 else f"{n} accesses"


@dataclass(frozen=True)
class Array:
    """An array argument of a kernel, or one of its shared arrays."""

    name: str
    size: int  # elements
    item: int  # bytes
    shared: bool = False
    empty: np.ndarray | None = None  # which elements held NaN before the launch


@dataclass(frozen=True)
class Fault:
    """A faulty access: `kind` is out of bounds, uninitialised read, or race."""

    kind: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.kind}, line {self.line}: {self.text}"


@dataclass
class Trace:
    """The accesses of one launch, one row each, in the emulator's order.

    `array` is the number of the array in `arrays`, or −1; `index` is the element, which may lie
    outside it; `line` is the line of the source, and `place` the instruction; `flags` has 1 for a
    write and 2 for an atomic; `barriers` and `warp_steps` count the barriers of the block, and of
    the warp, that the thread had passed.
    """

    kernel: str
    block_size: tuple[int, int, int]
    arrays: list[Array]
    block: np.ndarray
    thread: np.ndarray
    array: np.ndarray
    index: np.ndarray
    bytes: np.ndarray
    flags: np.ndarray
    line: np.ndarray
    place: np.ndarray
    barriers: np.ndarray
    warp_steps: np.ndarray

    def __len__(self) -> int:
        return len(self.thread)

    # --- faults ---------------------------------------------------------------------------------

    def faults(self) -> list[Fault]:
        """Accesses out of bounds, uninitialised reads and races: one per kind, line and array."""
        found = [*self._outside(), *self._unwritten(), *self._races()]
        return sorted({(f.kind, f.line, f.text): f for f in found}.values(), key=lambda f: f.line)

    def who(self, row: int) -> str:
        """The thread and block of an access, in words."""
        x, y, _ = self.block_size
        thread = int(self.thread[row])
        place = thread % x, thread // x % y, thread // x // y
        name = thread if self.block_size[1:] == (1, 1) else f"({', '.join(map(str, place))})"
        return f"thread {name} of block {self.block[row]}"

    def _element(self, row: int) -> str:
        return f"{self.arrays[self.array[row]].name}[{self.index[row]}]"

    def _each(self, rows: np.ndarray) -> Iterator[tuple[int, int]]:
        """For each line and array among the rows: the first row, and how many there are."""
        pairs = joined(self.line[rows], self.array[rows])
        _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        for at, n in zip(first, counts, strict=True):
            yield int(rows[at]), int(n)

    def _in_shared(self) -> np.ndarray:
        """Which rows are accesses to shared memory."""
        return np.array([array.shared for array in self.arrays] + [False])[self.array]

    def _outside(self) -> Iterator[Fault]:
        sizes = np.array([array.size for array in self.arrays] + [0])
        bad = (self.array < 0) | (self.index < 0) | (self.index >= sizes[self.array])
        for row, n in self._each(np.flatnonzero(bad)):
            verb = "writes" if self.flags[row] & WRITE else "reads"
            where = "memory that belongs to no array"
            if self.array[row] >= 0:
                last = self.arrays[self.array[row]].size - 1
                index = self.index[row]
                far = (
                    f"{index - last} after its last"
                    if index > last
                    else f"{-index} before its first"
                )
                where = f"{self._element(row)}, {far} element"
            text = f"{self.who(row)} {verb} {where} ({times(n)})"
            yield Fault("out of bounds", int(self.line[row]), text)

    def _unwritten(self) -> Iterator[Fault]:
        """Reads before any write: of shared memory, or of an output's NaN."""
        shared = self._in_shared()
        candidate = shared.copy()
        for number, array in enumerate(self.arrays):
            if array.empty is not None and array.empty.any():
                mine = np.flatnonzero((self.array == number) & (self.index >= 0))
                mine = mine[self.index[mine] < array.size]
                candidate[mine] = array.empty[self.index[mine]]
        rows = np.flatnonzero(candidate)
        block = np.where(shared[rows], self.block[rows].astype(np.int64), -1)
        keys = joined(block, self.array[rows], self.index[rows])
        _, first = np.unique(keys, return_index=True)
        reads = rows[first][(self.flags[rows[first]] != WRITE)]
        for row, n in self._each(np.sort(reads)):
            what = f"{self._element(row)}, which no thread has written"
            text = f"{self.who(row)} reads {what} ({times(n)})"
            yield Fault("uninitialised read", int(self.line[row]), text)

    def _races(self) -> Iterator[Fault]:
        """Two accesses to an element by different threads, one a write, with no barrier between."""
        shared = self._in_shared()
        known = self.array >= 0
        warp = self.thread // WARP
        everywhere = joined(self.array, self.index)
        epoch = joined(everywhere, self.block, self.barriers)
        step = joined(epoch, warp, self.warp_steps)
        seen = set()
        for keys, who, rows in (
            (everywhere, self.block, known & ~shared),
            (epoch, warp, known),
            (step, self.thread, known),
        ):
            for a, b in self._conflicts(keys, who, np.flatnonzero(rows)):
                lines = *sorted((int(self.line[a]), int(self.line[b]))), int(self.array[a])
                if lines in seen:
                    continue
                seen.add(lines)
                first, second = (self._does(row) for row in sorted((a, b)))
                text = f"{first}, and {second} with no barrier between: {self._element(a)}"
                yield Fault("race", int(self.line[max(a, b)]), text)

    def _does(self, row: int) -> str:
        verbs = {0: "reads", WRITE: "writes", WRITE | ATOMIC: "changes atomically"}
        return f"{self.who(row)} {verbs[int(self.flags[row])]} it in line {self.line[row]}"

    def _conflicts(self, keys, who, rows) -> Iterator[tuple[int, int]]:
        """Pairs of accesses with equal keys and different `who`: one a write, not both atomic."""
        if not len(rows):
            return
        _, group = np.unique(keys[rows], return_inverse=True)
        n = group.max() + 1
        flags, who = self.flags[rows], who[rows].astype(np.int64)
        most, least = np.zeros(n, np.int64), np.full(n, np.iinfo(np.int64).max)
        np.maximum.at(most, group, who)
        np.minimum.at(least, group, who)
        writes = np.bincount(group, flags & WRITE > 0, n) > 0
        plain = np.bincount(group, flags & ATOMIC == 0, n) > 0
        bad = (most > least) & writes & plain
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.flatnonzero(bad))
        # One example per set of lines will do, and there are few sets: some 500 groups show all.
        for start in starts[:: max(1, len(starts) // 500)]:
            members = order[start : np.searchsorted(group[order], group[order[start]], "right")]
            for i in members[np.argsort(flags[members] != WRITE, kind="stable")][:1]:
                partner = (who[members] != who[i]) & ((flags[members] | flags[i]) & WRITE > 0)
                partner &= (flags[members] & flags[i] & ATOMIC) == 0
                for j in members[partner][:1]:
                    yield int(rows[i]), int(rows[j])

    # --- how memory is used ---------------------------------------------------------------------

    def requests(self, name: str, write: bool | None = None) -> list[np.ndarray]:
        """The rows of each request: one instruction's access by the threads of a warp together.

        The nth pass of a thread belongs to the nth request of its warp there. `write` selects
        writes (True) or reads (False). Raises ValueError for an unknown array.
        """
        names = [array.name for array in self.arrays]
        if name not in names:
            raise ValueError(f"name: expected one of {', '.join(names)}, got {name!r}")
        mine = self.array == names.index(name)
        if write is not None:
            mine &= (self.flags & WRITE > 0) == write
        rows = np.flatnonzero(mine)
        if not len(rows):
            return []
        one = joined(self.place[rows], self.block[rows], self.thread[rows])
        order = np.argsort(one, kind="stable")
        rows, one, count = rows[order], one[order], np.arange(len(rows))
        passed = count - np.maximum.accumulate(np.where(np.diff(one, prepend=-1) != 0, count, 0))
        warp = self.thread[rows] // WARP
        keys = joined(self.place[rows], self.block[rows], warp, passed)
        order = np.argsort(keys, kind="stable")  # which keeps the threads in their order
        edges = np.flatnonzero(np.diff(keys[order])) + 1
        return np.split(rows[order], edges)

    def sectors(self, name: str, write: bool | None = None) -> np.ndarray:
        """The number of sectors of 32 bytes that each request for an array touches: integers.

        32 neighbours of 4 bytes need 4 sectors if the first lies at the start of one.
        """
        requests = self._bytes(name, write)
        return np.array([len(np.unique(places // SECTOR)) for places in requests], int)

    def conflicts(self, name: str, write: bool | None = None) -> np.ndarray:
        """The number of turns that each request for a shared array takes: 1 without a conflict.

        In one turn a bank serves one word of 4 bytes, to any number of threads.
        """
        words = (np.unique(places // 4) for places in self._bytes(name, write))
        return np.array([np.bincount(each % BANKS).max() for each in words], int)

    def _bytes(self, name: str, write: bool | None) -> list[np.ndarray]:
        """The offsets in bytes of each request's elements."""
        requests = self.requests(name, write)  # which also refuses an unknown name
        item = {array.name: array.item for array in self.arrays}[name]
        return [self.index[rows] * item for rows in requests]

    def traffic(self) -> dict[str, dict[str, float]]:
        """Reads, writes, bytes, requests and their cost, for each array that was accessed.

        `sectors` is the mean number of sectors per request (global memory), `turns` that of turns
        (shared memory); `moved` is the bytes of all sectors, as if nothing were cached.
        """
        found = {}
        for number, array in enumerate(self.arrays):
            mine = self.array == number
            if not mine.any():
                continue
            writes = self.flags[mine] & WRITE > 0
            cost = (self.conflicts if array.shared else self.sectors)(array.name)
            found[array.name] = {
                "reads": int((~writes).sum()),
                "writes": int(writes.sum()),
                "bytes": int(self.bytes[mine].sum()),
                "requests": len(cost),
                "turns" if array.shared else "sectors": float(cost.mean()),
            }
            if not array.shared:
                found[array.name]["moved"] = SECTOR * int(cost.sum())
        return found

    def moved(self) -> int:
        """The bytes moved between global memory and the processor, as if nothing were cached."""
        return sum(int(row.get("moved", 0)) for row in self.traffic().values())

    def intensity(self, operations: float) -> float:
        """The arithmetic intensity of `operations`: operations per byte moved."""
        return operations / self.moved()

    def __str__(self) -> str:
        """The report: a row per array, then the faults."""
        head = f"{self.kernel}: {len(self):,} accesses"
        rows = [("array", "reads", "writes", "requests", "sectors each", "turns each")]
        for name, row in self.traffic().items():
            costs = (f"{row[kind]:.2f}" if kind in row else "–" for kind in ("sectors", "turns"))
            rows.append((name, *(f"{row[k]:,}" for k in ("reads", "writes", "requests")), *costs))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join(t.rjust(w) for t, w in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(
            [head, *table, *(map(str, self.faults()) if self.faults() else ["no faults"])]
        )
