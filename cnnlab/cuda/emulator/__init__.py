"""CUDA C without a GPU: the same source, compiled as C++, on one core."""

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np

from cnnlab.cuda.launcher import Launcher
from cnnlab.runtime import cache
from cnnlab.runtime.files import replacing

HERE = Path(__file__).parent
HEADERS = "switch.h", "device.h"
DYNAMIC = re.compile(r"extern\s+__shared__\s+([\w\s]+?)\s+(\w+)\s*\[\s*\]\s*;")
SHARED = re.compile(r"__shared__\s+((?:\w+\s+)*\w+)\s+([^;]+);")
DECLARATOR = re.compile(r"\s*(\w+)\s*((?:\[[^]]*\]\s*)*)")
UNSUPPORTED = re.compile(
    r"<<<|__constant__|__managed__|\btexture\b|cooperative_groups|\basm\b|\bwmma\b|\bcuda::"
)

LOCK = threading.Lock()  # one kernel at a time: the fibres of a library are global
RUN = """
extern "C" const char* run_{name}(void** arguments, const unsigned* sizes, size_t shared)
{{
    auto call = [](void** each) {{ emulator::call({name}, each); }};
    return emulator::run(call, arguments, sizes, shared);
}}
"""


class Emulated(Launcher):
    """The kernels of one CUDA C source, compiled for this CPU, with a fibre per thread."""

    def __init__(self, source: str):
        super().__init__(source)
        self._path = self._build(translate(source, list(self.parameters)))
        self._library = ctypes.CDLL(str(self._path))

    def _build(self, text: str) -> Path:
        return build(text)

    def _prepare(self, name: str, sizes: list[int], arguments: list, shared: int):
        values = [np.array(a.ctypes.data if a.ndim else a) for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        numbers, n_shared = (ctypes.c_uint * 6)(*sizes), ctypes.c_size_t(shared)
        run = getattr(self._library, f"run_{name}")
        run.restype = ctypes.c_char_p

        def call(keep=(arguments, values)) -> None:  # which must outlive the pointers
            with LOCK:
                fault = run(pointers, numbers, n_shared)
            if fault:
                raise RuntimeError(f"{name}: {fault.decode()}")

        return call


def translate(source: str, kernels: list[str]) -> str:
    """The C++ for a CUDA source: the headers before it, a C function to run each kernel after it.

    Raises ValueError for CUDA that the emulator does not support.
    """
    if found := UNSUPPORTED.search(re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.DOTALL)):
        raise ValueError(f"source: expected CUDA C that the emulator supports, got {found[0]}")
    body = DYNAMIC.sub(r'\1* \2 = emulator::shared<\1>("\2");', source)
    body = SHARED.sub(shared_arrays, body)
    runs = "".join(RUN.format(name=name) for name in kernels)
    header = "\n".join((HERE / name).read_text(encoding="utf-8") for name in HEADERS)
    return f'{header}\n#line 1 "kernel.cu"\n{body}\n#line 1 "run"\n{runs}'


def shared_arrays(declaration: re.Match) -> str:
    """The C++ for a declaration of __shared__ variables, on one line to keep line numbers."""
    kind, variables = declaration.groups()
    return " ".join(
        f"typedef {kind} {name}_type{extents.strip()}; "
        f"static emulator::Shared<{name}_type> {name}_room; "
        f'{name}_type& {name} = emulator::shared("{name}", {name}_room);'
        for name, extents in DECLARATOR.findall(variables.replace("\n", " "))
        if name
    )


@functools.cache
def compiler() -> list[str]:
    """The command of a C++ compiler: the system's, or the one in the package ziglang.

    Raises RuntimeError without one.
    """
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return [name]
    try:
        import ziglang
    except ImportError:
        raise RuntimeError(
            "there is no C++ compiler: install g++ or clang++, or pip install ziglang"
        ) from None
    return [str(Path(ziglang.__file__).with_name("zig")), "c++"]


def build(text: str, options: tuple[str, ...] = ("-O2",)) -> Path:
    """Compile C++ to a shared library, cached under a digest of its text and options.

    Raises RuntimeError with the compiler's errors.
    """
    command = [*compiler(), "-std=c++17", "-fPIC", "-w", *options]
    digest = hashlib.sha256("\n".join([*command, text]).encode()).hexdigest()[:24]
    library = cache.folder("cuda") / f"{digest}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "kernel.cpp").write_text(text, encoding="utf-8")
            # Link without the options: they would add the thread sanitizer's library.
            steps = [[*command, "-c", "kernel.cpp"], [*compiler(), "-shared", "kernel.o"]]
            for step, made in zip(steps, ("kernel.o", "kernel.so"), strict=True):
                environment = os.environ | {"LC_ALL": "C"}
                done = subprocess.run(
                    [*step, "-o", made], capture_output=True, text=True, env=environment, cwd=folder
                )
                if done.returncode:
                    errors = [line for line in done.stderr.splitlines() if "error" in line]
                    raise RuntimeError("the CUDA source does not compile:\n" + "\n".join(errors))
            with replacing(library) as file:
                file.write(Path(folder, "kernel.so").read_bytes())
    return library
