"""CUDA C without a GPU: the same source, compiled as C++ by the system's compiler, on one core."""

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

from cnnlab import cache
from cnnlab.cuda.launcher import Launcher

HEADER = Path(__file__).with_name("emulator.h")
DYNAMIC = re.compile(r"extern\s+__shared__\s+(\w+)\s+(\w+)\s*\[\s*\]\s*;")
UNSUPPORTED = re.compile(
    r"<<<|__constant__|__managed__|\btexture\b|cooperative_groups|__launch_bounds__|\basm\b|wmma"
)

LOCK = threading.Lock()  # a library runs one kernel at a time: its fibres are global
RUN = """
extern "C" const char* run_{name}(void** arguments, const unsigned* sizes, size_t shared)
{{
    auto call = [](void** each) {{ emulator::call({name}, each); }};
    return emulator::run(call, arguments, sizes, shared);
}}
"""


class Emulated(Launcher):
    """The kernels of one CUDA C source as machine code of this CPU, a fibre for every thread."""

    def __init__(self, source: str):
        super().__init__(source)
        if found := UNSUPPORTED.search(source):
            raise ValueError(f"source: the emulator does not know {found[0]}")
        self._library = ctypes.CDLL(str(build(translate(source, list(self.parameters)))))

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        values = [np.array(a.ctypes.data if a.ndim else a) for a in arguments]  # kept until the end
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        run = getattr(self._library, f"run_{name}")
        run.restype = ctypes.c_char_p
        with LOCK:
            fault = run(pointers, (ctypes.c_uint * 6)(*sizes), ctypes.c_size_t(shared))
        if fault:
            raise RuntimeError(f"{name}: {fault.decode()}")


def translate(source: str, kernels: list[str]) -> str:
    """The C++ for a CUDA source: the header before it, and a C function to run each kernel."""
    body = DYNAMIC.sub(r"\1* \2 = (\1*)emulator::dynamic_shared.data();", source)
    runs = "".join(RUN.format(name=name) for name in kernels)
    return f'{HEADER.read_text()}\n#line 1 "kernel.cu"\n{body}\n{runs}'


@functools.cache
def compiler() -> list[str]:
    """The command of a C++ compiler: the system's, or that of the package ziglang."""
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


def build(text: str) -> Path:
    """Compile C++ to a shared library, kept by its content; RuntimeError with what is wrong."""
    command = [*compiler(), "-std=c++17", "-O2", "-shared", "-fPIC", "-w"]
    digest = hashlib.sha256("\n".join([*command, text]).encode()).hexdigest()[:24]
    library = cache.folder("cuda") / f"{digest}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            source, made = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
            source.write_text(text)
            done = subprocess.run(
                [*command, "-o", str(made), str(source)],
                capture_output=True,
                text=True,
                env=os.environ | {"LC_ALL": "C"},
            )
            if done.returncode:
                errors = [line for line in done.stderr.splitlines() if "error" in line]
                raise RuntimeError("the CUDA source does not compile:\n" + "\n".join(errors))
            os.replace(made, library)
    return library
