"""The accesses of a kernel: run it as plain Python on arrays that log every read and write."""

import contextlib
from collections.abc import Iterator

import numba
import numpy as np

READ, WRITE = "read", "write"


class Watched:
    """An array that logs each element read or written, as (name, READ or WRITE, position).

    For kernels run as plain Python, `kernel.py_func`. A view shares the log of its array.
    """

    def __init__(
        self, name: str, array: np.ndarray, log: list, positions: np.ndarray | None = None
    ):
        self.name, self.array, self.log = name, array, log
        self.positions = positions
        if positions is None:
            self.positions = np.arange(array.size).reshape(array.shape)

    shape = property(lambda self: self.array.shape)
    size = property(lambda self: self.array.size)
    ndim = property(lambda self: self.array.ndim)
    dtype = property(lambda self: self.array.dtype)

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index):
        value, positions = self.array[index], self.positions[index]
        if isinstance(value, np.ndarray):
            return Watched(self.name, value, self.log, positions)
        self.log.append((self.name, READ, int(positions)))
        return value

    def __setitem__(self, index, value):
        for position in np.ravel(self.positions[index]):
            self.log.append((self.name, WRITE, int(position)))
        self.array[index] = value


def accesses(kernel, **arrays: np.ndarray) -> list[tuple[str, str, int]]:
    """Run a Numba kernel as plain Python; return each access as (array, READ or WRITE, position).

    The position in memory is counted in elements; the order is that of one thread.
    """
    log: list[tuple[str, str, int]] = []
    function = getattr(kernel, "py_func", kernel)
    function(*(Watched(name, array, log) for name, array in arrays.items()))
    return log


def trips(log) -> dict[tuple[str, str], int]:
    """The number of accesses by array and kind: (array, READ or WRITE) → number."""
    counts: dict[tuple[str, str], int] = {}
    for name, kind, _ in log:
        counts[name, kind] = counts.get((name, kind), 0) + 1
    return counts


# --- races --------------------------------------------------------------------------------------


class Tasks(list):
    """A log that adds the task to each entry: the number of the `prange`, and the iteration."""

    task: tuple[int, int] | None = None
    loops = 0

    def append(self, entry) -> None:
        super().append((*entry, self.task))

    def prange(self, *bounds) -> Iterator[int]:
        """The stand-in for `numba.prange`; one nested in another is an ordinary range."""
        if self.task is not None:
            yield from range(*bounds)
            return
        self.loops += 1
        for i in range(*bounds):
            self.task = self.loops, i
            yield i
        self.task = None


def race(kernel, arrays: dict[str, np.ndarray], **options) -> str | None:
    """Run a parallel Numba kernel as plain Python; return which two iterations race, or None.

    Two iterations of a `prange` race if both access an element of an argument and one writes it,
    however rarely the result is wrong: timing plays no part. `options` go to the kernel. Raises
    TypeError, AttributeError or Numba's NumbaError for a kernel that plain Python cannot run on
    elements and slices, or that asks for its thread.
    """
    function, log = getattr(kernel, "py_func", kernel), Tasks()
    if "get_thread_id" in function.__code__.co_names:
        raise TypeError("kernel: expected one for any thread, got one that asks for its thread")
    with contextlib.ExitStack() as undo:
        original = numba.prange
        for names in (vars(numba), function.__globals__):
            for name in [n for n, value in names.items() if value is original]:
                undo.callback(names.__setitem__, name, original)
                names[name] = log.prange
        function(*(Watched(name, array, log) for name, array in arrays.items()), **options)
    seen: dict[tuple, tuple[set, set]] = {}
    for name, kind, position, task in log:
        if task is None:
            continue
        loop, iteration = task
        readers, writers = seen.setdefault((loop, name, position), (set(), set()))
        (writers if kind == WRITE else readers).add(iteration)
    for (_, name, position), (readers, writers) in seen.items():
        if writers and len(readers | writers) > 1:
            one = min(writers)
            other = min((readers | writers) - {one})
            at = ", ".join(str(i) for i in np.unravel_index(position, arrays[name].shape))
            verb = "write" if other in writers else "use"
            return f"iterations {one} and {other} of the prange both {verb} {name}[{at}]: a race"
    return None
