"""The accesses of a kernel: run it as plain Python on arrays that log every read and write."""

import contextlib
from collections import Counter
from collections.abc import Iterator

import numba
import numpy as np

READ, WRITE = "read", "write"


class Watched(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that logs each element read or written, as (name, READ or WRITE, position, task).

    For kernels run as plain Python, `kernel.py_func`. The position in memory is counted in
    elements. A view shares the log of its array. NumPy's functions read all of it, and write `out`.
    """

    def __init__(
        self, name: str, array: np.ndarray, log: "Tasks", positions: np.ndarray | None = None
    ):
        self.name, self.array, self.log = name, array, log
        self.positions, self.whole = positions, positions is None
        if self.whole:
            self.positions = np.arange(array.size).reshape(array.shape)

    shape = property(lambda self: self.array.shape)
    size = property(lambda self: self.array.size)
    ndim = property(lambda self: self.array.ndim)
    dtype = property(lambda self: self.array.dtype)
    T = property(lambda self: self.transpose())

    def __len__(self):
        return len(self.array)

    def __getitem__(self, index):
        value, positions = self.array[index], self.positions[index]
        if isinstance(value, np.ndarray):
            return Watched(self.name, value, self.log, positions)
        self.log.append((self.name, READ, int(positions)))
        return value

    def __setitem__(self, index, value):
        self.array[index] = value
        self.note(WRITE, self.positions[index])

    def __array__(self, dtype=None, copy=None):
        self.note(READ, self.positions)
        return self.array if dtype is None else self.array.astype(dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        plain = [np.asarray(each) if isinstance(each, Watched) else each for each in inputs]
        if out is None:
            return self.log.watched(getattr(ufunc, method)(*plain, **options))
        if inputs[0] is out[0] and out[0].whole and self.log.task:
            raise TypeError(f"{out[0].name}: += on a whole array is a reduction to Numba")
        into = tuple(each.array if isinstance(each, Watched) else each for each in out)
        getattr(ufunc, method)(*plain, out=into, **options)
        for each in out:
            if isinstance(each, Watched):
                each.note(WRITE, each.positions)
        return out[0]

    def __getattr__(self, name: str):
        """A method or attribute of the array: a view of it is watched, too."""
        if name.startswith("_") or not hasattr(self.array, name):
            raise AttributeError(f"{name}: not known of an array that is watched")

        def method(*arguments, **options):
            if name == "fill":
                self[...] = arguments[0]
                return None
            result = getattr(self.array, name)(*arguments, **options)
            if isinstance(result, np.ndarray) and np.shares_memory(result, self.array):
                positions = getattr(self.positions, name)(*arguments, **options)
                return Watched(self.name, result, self.log, positions)
            self.note(READ, self.positions)
            return self.log.watched(result)

        return method

    def note(self, kind: str, positions) -> None:
        """Log an access to each of these positions."""
        for position in np.ravel(positions):
            self.log.append((self.name, kind, int(position)))


THREADS = 5  # that a kernel is shown which asks for its thread


class Tasks(list):
    """A log that adds the task to each entry: the number of the `prange`, and the iteration.

    Of a kernel `by_thread`, which asks for its thread, it is the thread instead.
    """

    def __init__(self, by_thread: bool = False):
        self.task: tuple[int, int] | None = None
        self.loops = self.own = 0
        self.by_thread = by_thread

    def append(self, entry) -> None:
        super().append((*entry, self.task))

    def prange(self, *bounds) -> Iterator[int]:
        """The stand-in for `numba.prange`; one nested in another is an ordinary range."""
        if self.task is not None:
            yield from range(*bounds)
            return
        self.loops += 1
        for n, i in enumerate(range(*bounds)):
            self.task = self.loops, n % THREADS if self.by_thread else i
            yield i
        self.task = None

    def thread(self) -> int:
        """The stand-in for `numba.get_thread_id`."""
        return 0 if self.task is None else self.task[1]

    def watched(self, made):
        """What a kernel made: an array that all iterations see is watched."""
        if self.task is not None or not isinstance(made, np.ndarray) or made.ndim == 0:
            return made
        self.own += 1
        return Watched(f"own array {self.own}", made, self)

    def function(self, original):
        """The stand-in for a function of NumPy, and anything else of it as it is."""
        if not callable(original) or isinstance(original, type):
            return original

        def called(*arguments, **options):
            if original.__name__.endswith("_like"):  # it reads no element
                arguments = [a.array if isinstance(a, Watched) else a for a in arguments]
            made = original(*arguments, **options)
            return made if isinstance(made, Watched) else self.watched(made)

        return called


class Numpy:
    """The stand-in for `numpy` in a kernel, whose arrays are watched."""

    def __init__(self, log: Tasks):
        self._log = log  # `np.log` is NumPy's

    def __getattr__(self, name: str):
        return self._log.function(getattr(np, name))


def race(kernel, arrays: dict[str, np.ndarray], **options) -> str | None:
    """Run a parallel Numba kernel as plain Python; return which two iterations race, or None.

    Two iterations of a `prange` race if both access an element of an argument, or of an array that
    the kernel made before, and one writes it, however rarely the result is wrong: timing plays no
    part. Of a kernel that asks for its thread, two threads race. Where no two iterations of a
    `prange` write, or one part reads more than three of four elements, it returns that the loops
    are serial. `options` go to the kernel. Raises TypeError, AttributeError or Numba's NumbaError
    for a kernel that plain Python cannot run.
    """
    function = getattr(kernel, "py_func", kernel)
    log = Tasks("get_thread_id" in function.__code__.co_names)
    stand_ins = [(numba.prange, log.prange), (np, Numpy(log))]
    if log.by_thread:
        threads = (numba.get_thread_id, log.thread), (numba.get_num_threads, lambda: THREADS)
        stand_ins += threads
    with contextlib.ExitStack() as undo:
        for names in (vars(numba), function.__globals__):
            for name, value in list(names.items()):
                known = [stand_in for original, stand_in in stand_ins if value is original]
                if names is function.__globals__ and getattr(np, name, None) is value:
                    known.append(log.function(value))  # from numpy import …
                if known:
                    undo.callback(names.__setitem__, name, value)
                    names[name] = known[0]
        try:
            function(*(Watched(name, array, log) for name, array in arrays.items()), **options)
        except IndexError:
            if log.by_thread:
                raise TypeError("kernel: expected one for any number of threads") from None
            raise
    if "range" in function.__code__.co_names:
        if len({task for _, kind, _, task in log if kind == WRITE and task}) < 2:
            return "no two iterations of a prange write: the loops are serial"
        reads = Counter(task for _, kind, _, task in log if kind == READ)
        (one, most), n = reads.most_common(1)[0], reads.total()
        if most > 3 * n / 4:
            where = "outside" if one is None else "in one iteration"
            return f"{most} of {n} reads are {where} of a prange: the loops that compute are serial"
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
            where = f"element {position} of an array that the kernel made"
            if name in arrays:
                at = np.unravel_index(position, arrays[name].shape)
                where = f"{name}[{', '.join(map(str, at))}]"
            verb = "write" if other in writers else "use"
            who = "threads" if log.by_thread else "iterations"
            return f"{who} {one} and {other} of the prange both {verb} {where}: a race"
    return None
