"""What both devices share: the kernels of a source, and the checks of a launch."""

import math
from collections.abc import Callable, Sequence

from cnnlab.cuda.arguments import WHOLE, checked, kernels_of
from cnnlab.runtime.arguments import one_of

# What every GPU grants (CUDA C++ Programming Guide, "Compute Capabilities").
MOST_THREADS = 1024
MOST_SHARED = 48 * 1024  # bytes: of a block, by default
MOST_SIZES = 2**31 - 1, 65535, 65535, 1024, 1024, 64
AXES = "grid.x", "grid.y", "grid.z", "block.x", "block.y", "block.z"


class Launcher:
    """The kernels of one CUDA C source, by name; a subclass for each device runs them."""

    n_emulated = 0  # launches on the emulator, of all sources: who times can see where they ran

    def __init__(self, source: str):
        self.parameters = kernels_of(source)

    def launch(self, name: str, grid: Sequence[int], block: Sequence[int], *arguments, shared=0):
        """Run `name<<<grid, block, shared>>>(*arguments)` on arrays and numbers.

        Writes the results to the arrays that are not const, and waits if any of them is NumPy's:
        on arrays that lie on a GPU a launch does not wait. `shared` is the dynamic shared memory in
        bytes. Raises ValueError or TypeError for a wrong launch, RuntimeError for a kernel's fault.
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
        sizes = sizes_of(name, grid, block)
        if not isinstance(shared, WHOLE) or not 0 <= shared <= MOST_SHARED:
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


def sizes_of(kernel: str, grid: Sequence[int], block: Sequence[int]) -> list[int]:
    """The three sizes of a grid and of a block; raises ValueError if no GPU has such."""
    result = []
    for sizes in (grid, block):
        sizes = list(sizes) if isinstance(sizes, tuple | list) else [sizes]
        whole = all(isinstance(n, WHOLE) and n > 0 for n in sizes)
        if not whole or not 1 <= len(sizes) <= 3:
            break
        result += [int(n) for n in sizes] + [1] * (3 - len(sizes))
    if len(result) < 6 or math.prod(result[3:]) > MOST_THREADS:
        raise ValueError(
            f"{kernel}: expected up to three positive sizes each, and at most {MOST_THREADS} "
            f"threads in a block, got grid {grid}, block {block}"
        )
    for axis, size, most in zip(AXES, result, MOST_SIZES, strict=True):
        if size > most:
            raise ValueError(f"{kernel}: {axis}: expected at most {most}, got {size}")
    return result
