"""What both devices share: the kernels of a source, and the checks of a launch."""

import math
import re
from collections.abc import Sequence

import numpy as np

KERNEL = re.compile(r"__global__\s+void\s+(\w+)\s*\(([^)]*)\)")
MOST_THREADS = 1024
DTYPES = {"float*": np.float32, "double*": np.float64, "int*": np.int32}
SCALARS = {"int": np.int32, "unsigned": np.uint32, "float": np.float32}


class Launcher:
    """The kernels of one CUDA C source, by name; a device says how they are run."""

    def __init__(self, source: str):
        plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.DOTALL)
        self.parameters = {name: parameters(text) for name, text in KERNEL.findall(plain)}
        if not self.parameters:
            raise ValueError("source: expected a __global__ function, got none")

    def launch(self, name: str, grid: Sequence[int], block: Sequence[int], *arguments, shared=0):
        """Run `name<<<grid, block, shared>>>(arguments)` on NumPy arrays and numbers, and wait.

        Arrays that are not const hold the results afterwards. Raises ValueError or TypeError for a
        wrong launch, RuntimeError for a fault of the kernel.
        """
        if name not in self.parameters:
            raise ValueError(f"name: expected one of {', '.join(self.parameters)}, got {name!r}")
        sizes = [*grid, *[1] * (3 - len(grid)), *block, *[1] * (3 - len(block))]
        if len(sizes) != 6 or min(sizes) < 1 or math.prod(sizes[3:]) > MOST_THREADS:
            raise ValueError(
                f"{name}: expected up to three positive sizes each, and at most {MOST_THREADS} "
                f"threads in a block, got grid {tuple(grid)}, block {tuple(block)}"
            )
        expected = self.parameters[name]
        if len(arguments) != len(expected):
            raise ValueError(f"{name}: expected {len(expected)} arguments, got {len(arguments)}")
        pairs = zip(expected, arguments, strict=True)
        self._run(name, sizes, [checked(name, kind, value) for (kind, _), value in pairs], shared)

    def over(self, name: str, size: int, *arguments) -> None:
        """Launch with a thread for each of `size` elements, in blocks of 256."""
        self.launch(name, (-(-size // 256),), (256,), *arguments)

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        raise NotImplementedError


def parameters(text: str) -> list[tuple[str, bool]]:
    """The type of each of a kernel's parameters, such as "float*", and whether it is const."""
    found = []
    for parameter in text.split(","):
        words = parameter.replace("*", " * ").split()
        kind = "".join(word for word in words[:-1] if word not in ("const", "__restrict__"))
        if kind not in DTYPES and kind not in SCALARS:
            known = ", ".join([*DTYPES, *SCALARS])
            raise ValueError(f"source: expected parameters of {known}, got {parameter.strip()!r}")
        found.append((kind, "const" in words))
    return found


def checked(kernel: str, kind: str, value):
    """A kernel's argument, of the type that its parameter has."""
    if kind in SCALARS:
        return SCALARS[kind](value)
    if not isinstance(value, np.ndarray) or value.dtype != DTYPES[kind]:
        got = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise TypeError(f"{kernel}: expected an array of {DTYPES[kind].__name__}, got {got}")
    if not value.flags.c_contiguous:
        raise ValueError(f"{kernel}: expected a C-contiguous array, got strides {value.strides}")
    return value
