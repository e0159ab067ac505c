"""CUDA C without a GPU: the same source, compiled as C++, on one core."""

import ctypes
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

from cnnlab.cuda.emulator import memory
from cnnlab.cuda.emulator.compiler import PLAIN, build, source_lines
from cnnlab.cuda.emulator.translate import translate
from cnnlab.cuda.launcher import Launcher

LOCK = threading.Lock()  # one kernel at a time: the fibres of a library are global


class Emulated(Launcher):
    """The kernels of one CUDA C source, compiled for this CPU, with a fibre per thread."""

    def __init__(self, source: str, options: tuple[str, ...] = PLAIN):
        super().__init__(source)
        self._options = options
        text = translate(source, list(self.parameters))
        self._path = self._build(text)
        self._library = ctypes.CDLL(str(self._path))
        if "emulator::note_global" in text:  # variables, which begin anew in each object
            with tempfile.NamedTemporaryFile(suffix=".so") as copy:
                Path(copy.name).write_bytes(self._path.read_bytes())
                self._library = ctypes.CDLL(copy.name)
        stacks = ctypes.c_void_p(memory.stacks().ctypes.data)
        sizes = map(ctypes.c_size_t, (memory.STACK, memory.GUARD))
        self._library.emulator_stacks(stacks, *sizes)
        for address in (self._library.emulator_fault_place, self._library.emulator_base):
            address.restype = ctypes.c_size_t

    def _build(self, text: str) -> Path:
        return build(text, self._options)

    def _prepare(self, name: str, sizes: list[int], arguments: list, shared: int):
        kinds = self.parameters[name]
        pairs = zip(kinds, arguments, strict=True)
        values = [np.array(a.ctypes.data if kind.array else a) for kind, a in pairs]
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        numbers, n_shared = (ctypes.c_uint * 6)(*sizes), ctypes.c_size_t(shared)
        run, printed = getattr(self._library, f"run_{name}"), self._library.emulator_printed
        run.restype = printed.restype = ctypes.c_char_p

        def call(keep=(arguments, values)) -> None:  # which must outlive the pointers
            with LOCK:
                Launcher.n_emulated += 1
                fault, text = run(pointers, numbers, n_shared), printed()
            if text:
                sys.stdout.write(text.decode(errors="replace"))
            if fault:
                raise RuntimeError(f"{name}: {self._where()}{fault.decode()}")

        return call

    def _where(self) -> str:
        """The line at which the processor found a fault, if it did and the line is known."""
        place = self._library.emulator_fault_place()
        line = place and self._lines((place + 1,))[0]
        return f"line {line}: " if line else ""

    def _lines(self, places: tuple[int, ...]) -> list[int]:
        """The lines of the source for addresses of the machine code; 0 where it is unknown."""
        return source_lines(self._path, self._library.emulator_base(), places)
