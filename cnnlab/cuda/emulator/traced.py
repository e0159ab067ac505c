"""The emulator with a trace of every load and store."""

import ctypes
import functools
import shutil
import subprocess
from pathlib import Path

import numpy as np

from cnnlab.cuda.emulator import HERE, Emulated, build
from cnnlab.cuda.emulator.trace import Array, Trace

GAP = 64 * 1024  # bytes before and after each argument, where accesses out of bounds are caught
MOST = 20_000_000  # accesses per launch, of 48 bytes each
OPTIONS = ("-O1", "-g", "-fsanitize=thread", "-fno-inline-functions", "-DCNNLAB_TRACE")
ACCESS = np.dtype(
    [("address", "u8"), ("where", "u8")]
    + [(name, "u4") for name in ("block", "thread", "barriers", "warp_steps", "bytes", "flags")]
)
SHARED = np.dtype([("start", "u8"), ("bytes", "u8"), ("item", "u8"), ("name", "S40")])


class Traced(Emulated):
    """Like `Emulated`, but slower, for small sizes: after a launch, `trace` has its accesses.

    An access near an array but out of bounds is recorded in the trace; one that is far from every
    array ends the launch with RuntimeError.
    """

    traces: list[Trace]  # of all launches, in order

    def __init__(self, source: str):
        super().__init__(source)
        self.traces = []

    @property
    def trace(self) -> Trace:
        return self.traces[-1]

    def _build(self, text: str) -> Path:
        tracer = (HERE / "tracer.h").read_text(encoding="utf-8")
        return build(f'{text}\n#line 1 "tracer.h"\n{tracer}', OPTIONS)

    def _prepare(self, name: str, sizes: list[int], arguments: list, shared: int):
        return lambda: self._run(name, sizes, arguments, shared)

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        arrays = [a for a in arguments if a.ndim]
        names = [parameter.name for parameter in self.parameters[name] if parameter.array]
        constant = [parameter.const for parameter in self.parameters[name] if parameter.array]
        room = np.zeros(sum(a.nbytes + 256 for a in arrays) + (len(arrays) + 2) * GAP, np.uint8)
        first, copies = -room.ctypes.data % 256 + GAP, []
        for array in arrays:
            copies.append(room[first : first + array.nbytes].view(array.dtype))
            copies[-1][:] = array.ravel()
            first += -(-array.nbytes // 256) * 256 + GAP
        known = [
            (
                copy.ctypes.data,
                GAP,
                Array(text, copy.size, copy.itemsize, False, empty(copy, const)),
            )
            for text, copy, const in zip(names, copies, constant, strict=True)
        ]
        given, left = [], iter(copies)
        for argument in arguments:
            given.append(next(left) if argument.ndim else argument)
        start = room.ctypes.data
        self._library.trace_begin(*map(ctypes.c_size_t, (start, start + room.nbytes, MOST)))
        fault = None
        try:
            super()._prepare(name, sizes, given, shared)()
        except RuntimeError as error:
            fault = error
        self.traces.append(self._taken(name, sizes, known))
        if fault and str(fault).endswith("wild"):
            raise RuntimeError(f"{name}: {self.trace.faults()[-1]}") from None
        if fault and str(fault).endswith("full"):
            text = f"expected at most {MOST:,} accesses to trace, got more: use smaller sizes"
            raise RuntimeError(f"{name}: {text}")
        if fault:
            raise fault
        for array, copy in zip(arrays, copies, strict=True):
            array[...] = copy.reshape(array.shape)

    def _taken(self, name: str, sizes: list[int], known: list) -> Trace:
        rows = self._rows("trace_accesses", ACCESS)
        for row in self._rows("trace_shared", SHARED):
            array = Array(
                row["name"].decode(), int(row["bytes"] // row["item"]), int(row["item"]), True
            )
            known.append((int(row["start"]), 256, array))
        address = rows["address"].astype(np.int64)
        number, index = np.full(len(rows), -1), np.zeros(len(rows), np.int64)
        for i, (start, gap, array) in enumerate(known):
            end = start + array.size * array.item
            near = (address >= start - gap // 2) & (address < end + gap // 2)
            number[near], index[near] = i, (address[near] - start) // array.item
        places, place = np.unique(rows["where"], return_inverse=True)
        lines = np.array(source_lines(self._path, self._base(), tuple(places.tolist())), int)
        columns = {
            n: rows[n].astype(np.int64) for n in ACCESS.names if n not in ("address", "where")
        }
        return Trace(
            name,
            tuple(sizes[3:]),
            [array for _, _, array in known],
            array=number,
            index=index,
            line=lines[place] if len(rows) else np.empty(0, int),
            place=place,
            **columns,
        )

    def _rows(self, function: str, kind: np.dtype) -> np.ndarray:
        call, first = getattr(self._library, function), ctypes.c_void_p()
        call.restype = ctypes.c_size_t
        n = call(ctypes.byref(first))
        return (
            np.frombuffer(ctypes.string_at(first.value or 0, n * kind.itemsize), kind)
            if n
            else np.empty(0, kind)
        )

    def _base(self) -> int:
        """The address at which the library is loaded."""

        class Info(ctypes.Structure):  # Dl_info, as in dlfcn.h
            _fields_ = (
                ("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p),
            )  # fmt: skip

        info, inside = Info(), ctypes.cast(self._library.trace_begin, ctypes.c_void_p)
        ctypes.CDLL(None).dladdr(inside, ctypes.byref(info))
        return info.base


def empty(array: np.ndarray, const: bool) -> np.ndarray | None:
    """Which elements of an output hold NaN, so that reading them is a fault; None for inputs."""
    return np.isnan(array) if array.dtype.kind == "f" and not const else None


@functools.lru_cache(maxsize=256)
def source_lines(library: Path, base: int, where: tuple[int, ...]) -> list[int]:
    """The line of the CUDA source for each place in the machine code; 0 where it is unknown."""
    tool = next(filter(shutil.which, ("addr2line", "llvm-symbolizer", "llvm-addr2line")), None)
    if not where or tool is None:
        return [0] * len(where)
    inlined = ["--no-inlines"] if tool == "llvm-symbolizer" else []
    # A return address points to the next instruction, so look one byte before it.
    places = [hex(place - base - 1) for place in where]
    done = subprocess.run(
        [tool, *inlined, "-e", str(library), *places], capture_output=True, text=True
    )
    lines = [row for row in done.stdout.splitlines() if ":" in row]
    found = [row.split(" ")[0].split(":") for row in lines]
    return [
        int(line) if file.endswith("kernel.cu") and line.isdecimal() else 0
        for file, line, *_ in found
    ]
