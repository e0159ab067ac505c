"""How a kernel uses memory: requests and their coalescing, bank conflicts."""

import numpy as np

from cnnlab.cuda.emulator.faults import FENCE, WARP, WRITE, Accesses, joined
from cnnlab.cuda.emulator.memory import SECTOR
from cnnlab.runtime.arguments import table

BANKS = 32  # of shared memory, each 4 bytes wide


class Trace(Accesses):
    """The accesses of one launch, and how they use memory; if `sampled`, of some of its blocks."""

    def requests(self, name: str, write: bool | None = None) -> list[np.ndarray]:
        """The rows of each request: one instruction's access by the threads of a warp together.

        Together are those of one instruction in the same iteration of every loop around it, as on
        a GPU whose warps come together again after each branch and loop. `write` selects writes
        (True) or reads (False). Raises ValueError for an unknown array.
        """
        rows, edges = self._by_request(name, write)
        return np.split(rows, edges) if len(rows) else []

    def _by_request(self, name: str, write: bool | None) -> tuple[np.ndarray, np.ndarray]:
        """The rows of all requests, one request after the other, and where the next ones begin."""
        mine = self.array == self._number(name)
        if write is not None:
            mine &= (self.flags & WRITE > 0) == write
        rows = np.flatnonzero(mine)
        one = joined(self.place[rows], self.step[rows], self.block[rows], self.thread[rows])
        order = np.argsort(one, kind="stable")
        rows, one, count = rows[order], one[order], np.arange(len(rows))
        passed = count - np.maximum.accumulate(np.where(np.diff(one, prepend=-1) != 0, count, 0))
        warp = self.thread[rows] // WARP
        keys = joined(self.place[rows], self.step[rows], self.block[rows], warp, passed)
        order = np.argsort(keys, kind="stable")  # which keeps the threads in their order
        return rows[order], np.flatnonzero(np.diff(keys[order])) + 1

    def _number(self, name: str) -> int:
        """Which array has the name; arguments that overlap are one array with several names."""
        names = [array.name for array in self.arrays]
        for number, each in enumerate(names):
            if name in (each, *each.split("/")):
                return number
        raise ValueError(f"name: expected one of {', '.join(names)}, got {name!r}")

    def sectors(self, name: str, write: bool | None = None) -> np.ndarray:
        """The number of sectors of 32 bytes that each request for an array touches: integers.

        32 neighbours of 4 bytes need 4 sectors if the first lies at the start of one.
        """
        return np.bincount(self._touched(name, write, SECTOR)[0])

    def conflicts(self, name: str, write: bool | None = None) -> np.ndarray:
        """The number of turns that each request for a shared array takes: 1 without a conflict.

        In one turn a bank serves one word of 4 bytes, to any number of threads.
        """
        requests, words = self._touched(name, write, 4)
        last = BANKS * (requests.max(initial=-1) + 1)
        busy = np.bincount(BANKS * requests + words % BANKS, minlength=last)
        return busy.reshape(-1, BANKS).max(axis=1)

    def _touched(self, name: str, write: bool | None, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Requests, by number, and what each touches, once: places of `width` bytes."""
        rows, edges = self._by_request(name, write)
        places = self.index[rows] * self.arrays[self._number(name)].item // width
        request = np.searchsorted(edges, np.arange(len(rows)), "right")
        low, span = places.min(initial=0), np.ptp(np.append(places, 0)) + 1
        touched = np.sort(request * span + places - low)
        return np.divmod(touched[np.diff(touched, prepend=-1) > 0], span)

    def traffic(self) -> dict[str, dict[str, float]]:
        """Reads, writes, bytes, requests and their cost, for each array that was accessed.

        `sectors` is the mean number of sectors per request (global memory), `turns` that of turns
        (shared memory); `requested` is the bytes of all these sectors, as if nothing were cached.
        """
        result = {}
        for number, array in enumerate(self.arrays):
            mine = self.array == number
            if not mine.any():
                continue
            writes = self.flags[mine] & WRITE > 0
            cost = (self.conflicts if array.shared else self.sectors)(array.name)
            result[array.name] = {
                "reads": int((~writes).sum()),
                "writes": int(writes.sum()),
                "bytes": int(self.bytes[mine].sum()),
                "requests": len(cost),
                "turns" if array.shared else "sectors": float(cost.mean()),
            }
            if not array.shared:
                result[array.name]["requested"] = SECTOR * int(cost.sum())
        return result

    def requested(self) -> int:
        """The bytes of all sectors that warps request, as if nothing were cached.

        Of a sample, an estimate for all blocks. For bytes of DRAM see `cnnlab.cuda.emulator.cache`.
        """
        requested = sum(int(row.get("requested", 0)) for row in self.traffic().values())
        return int(requested * self.scale)

    @property
    def scale(self) -> float:
        """What a count is multiplied by to be that of all blocks: 1 unless there is a sample."""
        traced, blocks = self.sampled or (1, 1)
        return blocks / traced

    def loads(self, lines: range = range(1 << 31)) -> int:  # all of them
        """The number of reads on these lines of the source; of a sample, an estimate for all."""
        there = (self.line >= lines.start) & (self.line < lines.stop)
        return int(np.sum(there & (self.flags & (WRITE | FENCE) == 0)) * self.scale)

    def __str__(self) -> str:
        """The report: a row per array, then the faults."""
        head = f"{self.kernel}: {np.count_nonzero(self.flags != FENCE):,} accesses"
        if self.sampled:
            head += " in a sample of {:,} of {:,} blocks".format(*self.sampled)
        rows = [("array", "reads", "writes", "requests", "sectors each", "turns each")]
        for name, row in self.traffic().items():
            costs = (f"{row[kind]:.2f}" if kind in row else "–" for kind in ("sectors", "turns"))
            rows.append((name, *(f"{row[k]:,}" for k in ("reads", "writes", "requests")), *costs))
        faults = map(str, self.faults() or ["no faults"])
        return "\n".join([head, table(rows, ">" * len(rows[0])), *faults])
