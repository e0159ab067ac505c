"""Who reads and writes what: run a kernel on arrays that remember, and draw what they saw."""

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
