"""What both devices share: the parameters of a source's kernels, and the checks of a launch."""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cnnlab.runtime.arguments import one_of

KERNEL = re.compile(r"__global__\s+void\s+(\w+)\s*\(([^)]*)\)")
MOST_THREADS = 1024
MOST_SHARED = 48 * 1024  # bytes: what every GPU grants a block by default
DTYPES = {"float*": np.float32, "double*": np.float64, "int*": np.int32}
SCALARS = {"int": np.int32, "unsigned": np.uint32, "float": np.float32}


class Parameter(NamedTuple):
    """A parameter of a kernel: its name, its type (say, "float*"), and whether it is const."""

    name: str
    kind: str
    const: bool

    @property
    def array(self) -> bool:
        return self.kind.endswith("*")


class Launcher:
    """The kernels of one CUDA C source, by name; a subclass for each device runs them."""

    def __init__(self, source: str):
        plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.DOTALL)
        self.parameters = {name: parameters(text) for name, text in KERNEL.findall(plain)}
        if not self.parameters:
            raise ValueError("source: expected a __global__ function, got none")

    def launch(self, name: str, grid: Sequence[int], block: Sequence[int], *arguments, shared=0):
        """Run `name<<<grid, block, shared>>>(*arguments)` on arrays and numbers, and wait.

        Writes the results to the arrays that are not const. `shared` is the dynamic shared memory
        in bytes. Raises ValueError or TypeError for a wrong launch, RuntimeError for a fault of the
        kernel.
        """
        self._run(*self._checked(name, grid, block, arguments, shared))

    def prepare(
        self, name: str, grid: Sequence[int], block: Sequence[int], *arguments, shared=0
    ) -> Callable[[], None]:
        """Check a launch, and return a call that makes it without checks; a GPU's does not wait.

        On a GPU the arrays must lie there already, as those of `cnnlab.cuda.array_module()` do.
        """
        return self._prepare(*self._checked(name, grid, block, arguments, shared))

    def _checked(self, name, grid, block, arguments, shared) -> tuple:
        one_of("name", name, self.parameters)
        sizes = [*grid, *[1] * (3 - len(grid)), *block, *[1] * (3 - len(block))]
        if len(sizes) != 6 or min(sizes) < 1 or math.prod(sizes[3:]) > MOST_THREADS:
            raise ValueError(
                f"{name}: expected up to three positive sizes each, and at most {MOST_THREADS} "
                f"threads in a block, got grid {tuple(grid)}, block {tuple(block)}"
            )
        if not 0 <= shared <= MOST_SHARED:
            raise ValueError(
                f"{name}: shared: expected 0 to {MOST_SHARED} bytes of shared memory, got {shared}"
            )
        expected = self.parameters[name]
        if len(arguments) != len(expected):
            raise ValueError(f"{name}: expected {len(expected)} arguments, got {len(arguments)}")
        pairs = zip(expected, arguments, strict=True)
        return name, sizes, [checked(name, *pair) for pair in pairs], shared

    def over(self, name: str, size: int, *arguments) -> None:
        """Launch with one thread per element of `size`, in blocks of 256."""
        self.launch(name, (-(-size // 256),), (256,), *arguments)

    def _prepare(self, name: str, sizes: list[int], arguments: list, shared: int):
        raise NotImplementedError

    def _run(self, name: str, sizes: list[int], arguments: list, shared: int) -> None:
        self._prepare(name, sizes, arguments, shared)()


def parameters(text: str) -> list[Parameter]:
    """The parameters of a kernel, from the text between its parentheses.

    Raises ValueError for an unknown type.
    """
    found = []
    for parameter in text.split(","):
        words = parameter.replace("*", " * ").split()
        kind = "".join(word for word in words[:-1] if word not in ("const", "__restrict__"))
        if kind not in DTYPES and kind not in SCALARS:
            known = ", ".join([*DTYPES, *SCALARS])
            raise ValueError(f"source: expected parameters of {known}, got {parameter.strip()!r}")
        found.append(Parameter(words[-1], kind, "const" in words))
    return found


def checked(kernel: str, parameter: Parameter, value):
    """An argument of a kernel, as its parameter's type; raises TypeError or ValueError if unfit."""
    name, kind, _ = parameter
    if kind in SCALARS:
        return SCALARS[kind](value)
    known = isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__")
    if not known or value.dtype != DTYPES[kind]:
        got = value.dtype if known else type(value).__name__
        raise TypeError(
            f"{kernel}: {name}: expected an array of {DTYPES[kind].__name__}, got {got}"
        )
    if not value.flags.c_contiguous:
        raise ValueError(
            f"{kernel}: {name}: expected a C-contiguous array, got strides {value.strides}"
        )
    return value
