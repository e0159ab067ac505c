"""The accesses of a kernel to memory, and the faults among them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

import numpy as np

WARP = 32  # threads
WRITE, ATOMIC, READ_ONLY, COMPARED, FENCE = 1, 2, 8, 16, 32  # by __ldg; by atomicCAS
FAR = 16 * 1024  # elements: an index so far outside is not near its array


def joined(*columns: np.ndarray) -> np.ndarray:
    """One integer key per row of the columns: equal for equal rows, and in the rows' order."""
    key, extent = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low = int(column.min(initial=0))
        size = int(column.max(initial=0)) - low + 1
        if extent * size >= 2**63:
            result, key = np.unique(key, return_inverse=True)
            extent = len(result)
        key, extent = key * size + (column - low), extent * size
    return key


def times(n: int) -> str:
    """A count of accesses, in words."""
    return "1 access" if n == 1 else f"{n} accesses"


def unwritten(keys: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Which accesses, in their order, read an element before the first write to it.

    `keys` are equal for one element. An atomic access reads before it writes.
    """
    _, element = np.unique(keys, return_inverse=True)
    order, write = np.arange(len(keys)), flags & WRITE > 0
    first = np.full(element.max(initial=-1) + 1, len(keys))
    np.minimum.at(first, element[write], order[write])
    return (flags != WRITE) & (order <= first[element])


@dataclass(frozen=True)
class Array:
    """An array argument of a kernel, or one of its shared arrays."""

    name: str
    size: int  # elements
    item: int  # bytes
    shared: bool = False
    empty: np.ndarray | None = None  # which elements held NaN before the launch
    const: bool = False  # the kernel says that it does not write it
    start: int = 0  # an argument's address, where the launch was asked for


@dataclass(frozen=True)
class KernelFault:
    """A faulty access: `kind` is out of bounds, uninitialised read, write to const, or race."""

    kind: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.kind}, line {self.line}: {self.text}"


@dataclass
class Accesses:
    """The accesses of one launch, one row each, in the emulator's order.

    `array` is the number of the array in `arrays`, or −1; `index` is the element, which may lie
    outside it; `line` is the line of the source, and `place` the instruction; `step` is a number
    for each iteration of the loops around it, 0 outside; `flags` has WRITE, ATOMIC and so on, and
    FENCE alone for a __threadfence; `barriers` and `warp_steps` count the barriers of the block,
    and of the whole warp, that the thread had passed; `partial` has a row for each __syncwarp of
    some lanes: the accesses `before` it, its block, warp and lanes, a bit for each.

    If there were too many, the rows are those of some blocks: `sampled` has their number, and that
    of all blocks. `beyond` has indices outside of arrays whose size the compiler knows, `compiler`
    the faults that it saw. `gathered` has a bit for each lane whose value, in each warp, all lanes
    have by shuffles, directly or within a sum. `touched` has a row for each sector of the arguments
    and each block, of all blocks: the sector's number, and flags, see `cnnlab.cuda.emulator.cache`.
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
    step: np.ndarray
    beyond: list[dict] = field(default_factory=list)
    compiler: list[KernelFault] = field(default_factory=list)
    sampled: tuple[int, int] | None = None
    gathered: int = 0
    touched: np.ndarray | None = None
    partial: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.thread)

    def faults(self) -> list[KernelFault]:
        """Out of bounds, uninitialised reads, writes to const, races: one per kind, line, array."""
        each = self._by_element()
        result = [*each._outside(), *each._beyond(), *each._unwritten(), *each._constants()]
        result += [*each._races(), *self.compiler]
        return sorted({(f.kind, f.line, f.text): f for f in result}.values(), key=lambda f: f.line)

    def _by_element(self) -> "Accesses":
        """The accesses with those of several elements, as of a float4, one row per element."""
        n = np.maximum(self.bytes // self._of_array("item", 2**32), 1)
        if (n == 1).all():
            return self
        rows = np.repeat(np.arange(len(n)), n)
        names = [column.name for column in fields(self) if column.type is np.ndarray]
        columns = {name: getattr(self, name)[rows] for name in names}
        columns["index"] = columns["index"] + np.arange(len(rows)) - np.repeat(np.cumsum(n) - n, n)
        if self.partial is not None:
            columns["partial"] = self.partial.copy()
            columns["partial"]["before"] = np.append(0, np.cumsum(n))[self.partial["before"]]
        return replace(self, **columns)

    def _of_array(self, attribute: str, missing) -> np.ndarray:
        """An attribute of each row's array; `missing` for rows of none."""
        values = [*(getattr(array, attribute) for array in self.arrays), missing]
        return np.array(values)[self.array]

    def _fault(self, kind: str, row: int, n: int, what: str) -> KernelFault:
        """What the thread of an access does, so many times among those that were traced."""
        which = " in the {:,} of {:,} blocks that were traced".format(*self.sampled or (0, 0))
        text = f"{self._who(row)} {what} ({times(n)}{which * bool(self.sampled)})"
        return KernelFault(kind, int(self.line[row]), text)

    def _who(self, row: int) -> str:
        return self._name(int(self.thread[row]), int(self.block[row]))

    def _name(self, thread: int, block: int) -> str:
        """The thread and block of an access, in words."""
        x, y, _ = self.block_size
        place = thread % x, thread // x % y, thread // x // y
        name = thread if self.block_size[1:] == (1, 1) else f"({', '.join(map(str, place))})"
        return f"thread {name} of block {block}"

    def _element(self, row: int) -> str:
        return f"{self.arrays[self.array[row]].name}[{self.index[row]}]"

    def _each(self, rows: np.ndarray) -> Iterator[tuple[int, int]]:
        """For each line and array among the rows: the first row, and how many there are."""
        pairs = joined(self.line[rows], self.array[rows])
        _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        for at, n in zip(first, counts, strict=True):
            yield int(rows[at]), int(n)

    def _outside(self) -> Iterator[KernelFault]:
        bad = (self.index < 0) | (self.index >= self._of_array("size", 0)) | (self.array < 0)
        bad &= self.flags != FENCE
        for row, n in self._each(np.flatnonzero(bad)):
            verb = "writes" if self.flags[row] & WRITE else "reads"
            where = "memory that belongs to no array"
            if self.array[row] >= 0:
                last, index = self.arrays[self.array[row]].size - 1, self.index[row]
                after, before = f"{index - last} after its last", f"{-index} before its first"
                far = after if index > last else before
                where = f"{self._element(row)}, {far} element"
                if not -FAR < index < last + FAR:
                    where += ", where there is no array"
            yield self._fault("out of bounds", row, n, f"{verb} {where}")

    def _beyond(self) -> Iterator[KernelFault]:
        """Indices that leave a local array; a shared array's have been found among the accesses."""
        outside = (self.index < 0) | (self.index >= self._of_array("size", 0))
        outside &= self._of_array("shared", False)
        for row in self.beyond:
            same = outside & (self.line == row["line"]) & (self.thread == row["thread"])
            if (same & (self.block == row["block"])).any():
                continue
            who = self._name(row["thread"], row["block"])
            what = f"takes element {row['index']} of an array of {row['size']}"
            yield KernelFault("out of bounds", row["line"], f"{who} {what} ({times(row['times'])})")

    def _constants(self) -> Iterator[KernelFault]:
        """Writes to an array that the kernel's parameter says is const."""
        bad = self._of_array("const", False) & (self.flags & WRITE > 0)
        for row, n in self._each(np.flatnonzero(bad)):
            what = f"writes {self._element(row)}, a const argument"
            yield self._fault("write to const", row, n, what)

    def _read_only(self, keys: np.ndarray) -> Iterator[KernelFault]:
        """Elements, which the keys number, that are read by __ldg and that the kernel writes."""
        rows = np.flatnonzero(self.flags & READ_ONLY)
        written = np.isin(keys[rows], keys[self.flags & WRITE > 0])
        for row, n in self._each(rows[written]):
            what = f"reads {self._element(row)} by __ldg, and the kernel writes it"
            yield self._fault("race", row, n, what)

    def _unwritten(self) -> Iterator[KernelFault]:
        """Reads before any write: of shared memory, or of an output's NaN."""
        shared = self._of_array("shared", False)
        candidate = shared.copy()
        for number, array in enumerate(self.arrays):
            # Blocks that are not traced may have written it.
            if array.empty is not None and array.empty.any() and not self.sampled:
                mine = np.flatnonzero((self.array == number) & (self.index >= 0))
                mine = mine[self.index[mine] < array.size]
                candidate[mine] = array.empty[self.index[mine]]
        rows = np.flatnonzero(candidate)
        block = np.where(shared[rows], self.block[rows].astype(np.int64), -1)
        keys = joined(block, self.array[rows], self.index[rows])
        for row, n in self._each(rows[unwritten(keys, self.flags[rows])]):
            what = f"reads {self._element(row)}, which no thread has written"
            yield self._fault("uninitialised read", row, n, what)

    def _races(self) -> Iterator[KernelFault]:
        """Two accesses to an element by different threads, one a write, with no barrier between.

        No race is a read for the sake of an atomicCAS, which finds out whether it was in time.
        """
        warp, seen, everywhere = self.thread // WARP, set(), joined(self.array, self.index)
        yield from self._read_only(everywhere)
        shared = self._of_array("shared", False)
        known = (self.array >= 0) & ~self._guesses(everywhere)
        epoch = joined(everywhere, self.block, self.barriers)
        step = joined(epoch, warp, self.warp_steps)
        for keys, who, rows in (
            (everywhere, self.block, known & ~shared),
            (epoch, warp, known),
            (step, self.thread, known),
        ):
            partly = who is self.thread and self.partial is not None and len(self.partial) > 0
            for a, b in self._conflicts(keys, who, np.flatnonzero(rows), partly):
                lines = *sorted((int(self.line[a]), int(self.line[b]))), int(self.array[a])
                if lines in seen or (who is self.block and self._handed_over(everywhere, a, b)):
                    continue
                seen.add(lines)
                first, second = (self._does(row) for row in sorted((a, b)))
                text = f"{first}, and {second} with no barrier between: {self._element(a)}"
                yield KernelFault("race", int(self.line[max(a, b)]), text)

    def _guesses(self, keys: np.ndarray) -> np.ndarray:
        """Which are reads before an atomicCAS of their thread; in a loop, not each needs one."""
        result, compared = np.zeros(len(self), bool), self.flags & COMPARED > 0
        if compared.any():
            own, read = joined(keys, self.block, self.thread), joined(keys, self.place)
            order = np.argsort(own, kind="stable")
            now, after = order[:-1], order[1:]
            result[now] = (own[now] == own[after]) & compared[after]
            again = now[result[now] & (self.step[after] > 0)]
            result |= np.isin(read, read[again])
        return result & (self.flags & WRITE == 0)

    def _parted(self, a: int, b: int) -> bool:
        """Whether __syncwarp's of some lanes order two accesses of a warp, lane by lane."""
        a, b = sorted((a, b))
        rows = self.partial[(self.partial["before"] > a) & (self.partial["before"] <= b)]
        rows = rows[(rows["block"] == self.block[a]) & (rows["warp"] == self.thread[a] // WARP)]
        after = 1 << int(self.thread[a]) % WARP  # the lanes that come after a
        for lanes in rows["lanes"].tolist():
            after |= lanes if lanes & after else 0
        return bool(after >> int(self.thread[b]) % WARP & 1)

    def _handed_over(self, keys: np.ndarray, a: int, b: int) -> bool:
        """Whether, after a fence, block after block changes one element between two accesses.

        Atomically, as where the last block to arrive reads what the others have written.
        """
        a, b = sorted((a, b))
        mine, other = (np.flatnonzero(self.block == self.block[row]) for row in (a, b))
        other = other[(self.flags[other] & ATOMIC > 0) & (other < b)]
        gives = mine[(self.flags[mine] & ATOMIC > 0) & np.isin(keys[mine], keys[other])]
        fences = mine[(self.flags[mine] == FENCE) & self._ordered(a, mine)]
        return a in gives or bool(self._ordered(fences[:, None], gives).any())

    def _ordered(self, a, b) -> np.ndarray:
        """Whether accesses b come after those of a, of their block: by thread, or by a barrier."""
        after = (self.thread[a] == self.thread[b]) & np.less(a, b)
        warp = self.thread[a] // WARP == self.thread[b] // WARP
        after |= warp & (self.warp_steps[a] < self.warp_steps[b])
        return after | (self.barriers[a] < self.barriers[b])

    def _does(self, row: int) -> str:
        verbs = {0: "reads", WRITE: "writes", WRITE | ATOMIC: "changes atomically"}
        kind = int(self.flags[row]) & (WRITE | ATOMIC)
        return f"{self._who(row)} {verbs[kind]} it in line {self.line[row]}"

    def _conflicts(self, keys, who, rows, partly=False) -> Iterator[tuple[int, int]]:
        """Pairs of accesses with equal keys and different `who`: one a write, not both atomic.

        One pair of each key at most; if `partly`, none that some lanes' barriers have parted.
        """
        if not len(rows):
            return
        flags, who, keys = self.flags[rows], who[rows], keys[rows]
        order = np.argsort(keys, kind="stable")  # key by key
        first = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
        most, least = (extreme.reduceat(who[order], first) for extreme in (np.maximum, np.minimum))
        writes = np.bitwise_or.reduceat(flags[order] & WRITE, first) > 0
        plain = np.bitwise_and.reduceat(flags[order] & ATOMIC, first) == 0
        groups, ends = np.flatnonzero((most > least) & writes & plain), np.append(first, len(rows))
        # One example per set of lines will do, and there are few sets: some 500 groups show all.
        for group in groups[:: 1 if partly else max(1, len(groups) // 500)]:
            members = order[ends[group] : ends[group + 1]]
            writers = members[flags[members] & WRITE > 0]
            writers = writers[np.argsort(flags[writers] & ATOMIC, kind="stable")]
            first = (writers[0], *writers[who[writers] != who[writers[0]]][:1])
            for i in writers if partly else first:
                partner = (who[members] != who[i]) & ((flags[members] | flags[i]) & WRITE > 0)
                partner &= (flags[members] & flags[i] & ATOMIC) == 0
                pairs = ((int(rows[i]), int(rows[j])) for j in members[partner])
                pair = next((p for p in pairs if not (partly and self._parted(*p))), None)
                if pair:
                    yield pair
                    break
