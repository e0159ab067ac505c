"""Who reads and writes what: run a kernel on arrays that remember what was done to them."""

import contextlib
from collections.abc import Iterator

import numba
import numpy as np

READ, WRITE = "read", "write"


class Watched:
    """An array that remembers every element that is read or written, in `log` as (step, …).

    Works for kernels run as plain Python, `kernel.py_func`. Views share the log of their array.
    """

    def __init__(self, name: str, array: np.ndarray, log: list, places: np.ndarray | None = None):
        self.name, self.array, self.log = name, array, log
        self.places = np.arange(array.size).reshape(array.shape) if places is None else places

    shape = property(lambda self: self.array.shape)
    size = property(lambda self: self.array.size)
    ndim = property(lambda self: self.array.ndim)
    dtype = property(lambda self: self.array.dtype)

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index):
        value, places = self.array[index], self.places[index]
        if isinstance(value, np.ndarray):
            return Watched(self.name, value, self.log, places)
        self.log.append((self.name, READ, int(places)))
        return value

    def __setitem__(self, index, value):
        for place in np.ravel(self.places[index]):
            self.log.append((self.name, WRITE, int(place)))
        self.array[index] = value


def accesses(kernel, **arrays: np.ndarray) -> list[tuple[str, str, int]]:
    """Run a Numba kernel as plain Python; return each access as (array, read or write, place).

    The place is the position in memory, counted in elements; the order is that of one thread.
    """
    log: list[tuple[str, str, int]] = []
    function = getattr(kernel, "py_func", kernel)
    function(*(Watched(name, array, log) for name, array in arrays.items()))
    return log


def trips(log) -> dict[tuple[str, str], int]:
    """How many accesses of each kind each array had: (array, read or write) → number."""
    counts: dict[tuple[str, str], int] = {}
    for name, kind, _ in log:
        counts[name, kind] = counts.get((name, kind), 0) + 1
    return counts


# --- races --------------------------------------------------------------------------------------


class Tasks(list):
    """A log that also notes the task: the number of the parallel loop, and the iteration in it."""

    task: tuple[int, int] | None = None
    loops = 0

    def append(self, entry) -> None:
        super().append((*entry, self.task))

    def prange(self, *bounds) -> Iterator[int]:
        """What stands for `numba.prange`; a loop within a task is an ordinary one."""
        if self.task is not None:
            yield from range(*bounds)
            return
        self.loops += 1
        for i in range(*bounds):
            self.task = self.loops, i
            yield i
        self.task = None


def race(kernel, arrays: dict[str, np.ndarray], **options) -> str | None:
    """Run a parallel Numba kernel as plain Python; tell of two tasks that race, or return None.

    Two iterations of a `prange` race if both touch an element of an argument, and one writes it:
    however rarely it goes wrong, nothing keeps them apart. Works by what the loops do, not by
    timing. Options go to the kernel. Raises TypeError, AttributeError or Numba's NumbaError for one
    that does not run as plain Python, on elements and slices, or that asks for its thread.
    """
    function, log = getattr(kernel, "py_func", kernel), Tasks()
    if "get_thread_id" in function.__code__.co_names:
        raise TypeError("a kernel that asks for its thread cannot be followed as plain Python")
    with contextlib.ExitStack() as undo:
        original = numba.prange
        for names in (vars(numba), function.__globals__):
            for name in [n for n, value in names.items() if value is original]:
                undo.callback(names.__setitem__, name, original)
                names[name] = log.prange
        function(*(Watched(name, array, log) for name, array in arrays.items()), **options)
    seen: dict[tuple, tuple[set, set]] = {}
    for name, kind, place, task in log:
        if task is None:
            continue
        loop, iteration = task
        readers, writers = seen.setdefault((loop, name, place), (set(), set()))
        (writers if kind == WRITE else readers).add(iteration)
    for (_, name, place), (readers, writers) in seen.items():
        if writers and len(readers | writers) > 1:
            one = min(writers)
            other = min((readers | writers) - {one})
            at = ", ".join(str(i) for i in np.unravel_index(place, arrays[name].shape))
            verb = "write" if other in writers else "use"
            return f"iterations {one} and {other} of the prange both {verb} {name}[{at}]: a race"
    return None
