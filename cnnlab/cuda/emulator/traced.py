"""The emulator with a trace of every load and store."""

import contextlib
import ctypes
import io
import re
from itertools import chain
from operator import itemgetter
from pathlib import Path

import numpy as np

from cnnlab.cuda.arguments import NUMBERS, SHORTER, VECTORS, code
from cnnlab.cuda.emulator import Emulated
from cnnlab.cuda.emulator.compiler import build, warnings
from cnnlab.cuda.emulator.faults import WARP, Array, KernelFault
from cnnlab.cuda.emulator.memory import SECTOR, Arena, place
from cnnlab.cuda.emulator.trace import Trace
from cnnlab.cuda.emulator.translate import counted

MOST = 4_000_000  # accesses per launch, of 56 bytes each while it runs
MIX = 0x9E3779B97F4A7C15  # odd, so that neighbouring numbers give unlike schedules
KINDS = (*NUMBERS, *SHORTER, *VECTORS)
OPTIONS = (
    "-O1", "-fsanitize=thread,bounds", "-fno-inline-functions", "-DCNNLAB_TRACE", "-Wall",
)  # fmt: skip
ACCESS = np.dtype(
    [("address", "u8"), ("where", "u8"), ("step", "u8")]
    + [(name, "u4") for name in ("block", "thread", "barriers", "warp_steps", "bytes", "flags")]
)
TOUCH = np.dtype([("address", "u8"), ("block", "u4"), ("flags", "u4")])
PARTIAL = np.dtype([("before", "u8")] + [(n, "u4") for n in ("block", "warp", "lanes", "unused")])
ARRAY = np.dtype([(n, "u8") for n in ("start", "bytes", "item", "shared")] + [("name", "S40")])
BEYOND = np.dtype(
    [("where", "u8"), ("index", "i8")]
    + [(name, "u4") for name in ("size", "block", "thread", "times")]
)


class Traced(Emulated):
    """Like `Emulated`, but slower, for small sizes: after a launch, `trace` has its accesses.

    An access near an array but out of bounds is recorded in the trace; one that is far from every
    array ends the launch with RuntimeError. Of a launch with more than `most` accesses, by default
    `MOST`, some blocks are traced: `Trace.sampled`. A `schedule` of 1 or more numbers a shuffled
    one, see schedule.h; at 0 each thread runs until it waits.
    """

    def __init__(
        self, source: str, traces: list | None = None, most: int | None = None, schedule: int = 0
    ):
        super().__init__(source)
        self._most, self._schedule = MOST if most is None else most, schedule
        self.source, self.traces = source, [] if traces is None else traces  # of all launches

    @property
    def trace(self) -> Trace:
        return self.traces[-1]

    def _build(self, text: str) -> Path:
        headers, line, source = text.partition('#line 1 "kernel.cu"\n')
        return build(f"{headers}{line}{counted(source)}", OPTIONS)

    def _prepare(self, name: str, sizes: list[int], arguments: list, shared: int):
        return lambda: self._run(name, sizes, arguments, shared)

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        kinds = self.parameters[name]
        pairs = list(zip(kinds, arguments, strict=True))
        arena = Arena([value for kind, value in pairs if kind.array])
        copies = iter(arena.copies)
        given = [next(copies) if kind.array else value for kind, value in pairs]
        unset = self._unset(arena, name, sizes, given, shared) if self._most else []
        arena.fill()
        known = arguments_of([kind for kind in kinds if kind.array], arena)
        windows = (ctypes.c_uint64 * (2 * len(arena.windows)))(*chain(*arena.windows))
        numbers = len(arena.windows), self._most, self._schedule * MIX % 2**64
        self._library.trace_begin(windows, *map(ctypes.c_uint64, numbers))
        fault = None
        try:
            super()._prepare(name, sizes, given, shared)()
        except RuntimeError as error:
            fault = error
        try:
            if str(fault).endswith("full"):
                text = f"expected at most {self._most:,} accesses to trace, got more"
                raise RuntimeError(f"{name}: {text}: use smaller sizes")
            self.traces.append(self._taken(name, sizes, known, unset))
        finally:
            self._library.trace_end()
        if str(fault).endswith(("wild", "beyond")):
            outside = [f for f in self.trace.faults() if f.kind == "out of bounds"]
            raise RuntimeError(f"{name}: {outside[-1]}") from None
        if fault:
            raise fault
        arena.give_back([kind.const for kind in kinds if kind.array])

    def _unset(self, arena: Arena, name: str, sizes, given: list, shared: int) -> list[KernelFault]:
        """Local variables that are read before they are set.

        The compiler knows some for certain. Where it only suspects one, or one is declared without
        a value, the launch runs with two different values in it, and the results tell.
        """
        kind = "uninitialised read"
        certain = warnings(self._path, "uninitialized")
        faults = [KernelFault(kind, line, said) for line, said in certain]
        suspects = warnings(self._path, "maybe-uninitialized|(sometimes|conditional)-uninitialized")
        suspects = suspects or without_value(self.source)  # GCC takes the one value that is set
        if not suspects:
            return faults
        results = []  # without optimization, which takes such a variable for one that suits it
        for fill in ("zero", "pattern"):
            try:
                kernels = Emulated(self.source, ("-O0", f"-ftrivial-auto-var-init={fill}"))
            except RuntimeError:  # GCC before 12 cannot fill variables
                return faults
            arena.fill()
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    kernels._prepare(name, sizes, given, shared)()
                results.append(arena.results())
            except RuntimeError as error:
                results.append(str(error))
        if results[0] != results[1]:
            faults += [
                KernelFault(kind, line, f"{said}, and results differ") for line, said in suspects
            ]
        return faults

    def _taken(self, name: str, sizes: list[int], known: list, faults: list[KernelFault]) -> Trace:
        rows = self._rows("trace_accesses", ACCESS)
        for row in self._rows("trace_arrays", ARRAY):
            size, item = int(row["bytes"] // row["item"]), int(row["item"])
            array = Array(row["name"].decode(), size, item, bool(row["shared"]))
            known.append((int(row["start"]), 256 if row["shared"] else 64, array))
        address = rows["address"].astype(np.int64)
        number, index = np.full(len(rows), -1), np.zeros(len(rows), np.int64)
        for i, (start, gap, array) in enumerate(known):
            end = start + array.size * array.item
            mine = (address >= start) & (address < end)
            mine |= (number < 0) & (address >= start - gap // 2) & (address < end + gap // 2)
            number[mine], index[mine] = i, (address[mine] - start) // array.item
        places, steps = np.unique(rows["where"]), np.unique(np.append(0, rows["step"]))
        lines = np.array(self._lines(tuple(places.tolist())), int)
        n_blocks, n_watched = int(np.prod(sizes[:3])), int(self._library.trace_watched())
        place = np.searchsorted(places, rows["where"])
        columns = {n: rows[n].astype(np.int64) for n in ACCESS.names[3:]}  # from "block" on
        columns |= {"array": number, "index": index, "line": lines[place], "place": place}
        columns["step"] = np.searchsorted(steps, rows["step"])
        sampled = None if n_watched == n_blocks else (n_watched, n_blocks)
        more = {"beyond": self._beyond(), "compiler": faults, "sampled": sampled}
        more["gathered"] = self._library.trace_gathered() % 2**WARP
        more["partial"] = self._rows("trace_partials", PARTIAL).copy()
        more["touched"] = touched(self._rows("trace_touches", TOUCH), known)
        arrays = [array for _, _, array in known]
        return Trace(name, tuple(sizes[3:]), arrays, **columns, **more)

    def _beyond(self) -> list[dict]:
        """The indices outside of arrays whose size the compiler knows, with their lines."""
        rows = self._rows("trace_beyond", BEYOND)
        lines = self._lines(tuple(rows["where"].tolist()))
        result = [dict(zip(BEYOND.names, map(int, row), strict=True)) for row in rows]
        return [row | {"line": line} for row, line in zip(result, lines, strict=True)]

    def _rows(self, function: str, kind: np.dtype) -> np.ndarray:
        call, first = getattr(self._library, function), ctypes.c_void_p()
        call.restype = ctypes.c_size_t
        n = call(ctypes.byref(first))
        memory = (ctypes.c_char * (n * kind.itemsize)).from_address(first.value) if n else b""
        return np.frombuffer(memory, kind)


def touched(rows: np.ndarray, known: list[tuple[int, int, Array]]) -> np.ndarray:
    """The sector, where the launch was asked for, and the flags of each touch of an argument."""
    sector = rows["address"].astype(np.int64) // SECTOR
    inside = np.zeros(len(rows), bool)
    for start, _, array in known:
        first, last = start // SECTOR, (start + array.size * array.item - 1) // SECTOR
        mine = (sector >= first) & (sector <= last) & ~inside
        sector[mine] += array.start // SECTOR - first
        inside |= mine
    return np.stack([sector, rows["flags"]], 1)[inside]


def without_value(source: str) -> list[tuple[int, str]]:
    """The variables that a source declares without a value: the line of each, and words about it.

    Members of structs are among them.
    """
    text = code(source)
    declared = re.finditer(
        rf"(?<=[{{;}}])\s*(?:volatile\s+)?(?:{'|'.join(KINDS)})\s+(\w+)\s*(?:\[[^;=]*)?[;,]", text
    )
    return [
        (text.count("\n", 0, result.start(1)) + 1, f"{result[1]!r} is declared without a value")
        for result in declared
    ]


def arguments_of(kinds: list, arena: Arena) -> list[tuple[int, int, Array]]:
    """For each region of the arena: its start, how far around it accesses are its, its array.

    Arguments that overlap are one array, with the names of all of them.
    """
    result = []
    for start, size, group in arena.regions:
        name = "/".join(kinds[i].name for i in group)
        item = min(arena.copies[i].itemsize for i in group)
        const = all(kinds[i].const for i in group)
        floats = not const and all(arena.copies[i].dtype.kind == "f" for i in group)
        empty = np.isnan(arena.copies[group[0]]).ravel() if floats and len(group) == 1 else None
        asked = min(place(arena.arrays[i]) for i in group)
        array = Array(name, size // item, item, False, empty, const, asked)
        result.append((group[0], start, array))
    return [(start, arena.apart, array) for _, start, array in sorted(result, key=itemgetter(0))]
