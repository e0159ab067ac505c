"""How many threads the kernels of `threads` run on.

Numba keeps one pool of threads for the whole process, made when the first parallel kernel is
compiled; a call uses as many of them as the calling Python thread has asked for.
"""

import contextlib
import os
import sys
import threading

import joblib

# For parallel kernels: Numba's workqueue layer kills a process that is in two of them at once, and
# on the other layers two calls would only get in each other's way.
LOCK = threading.RLock()


def usable_cores() -> int:
    """How many logical cores this process may use: its affinity, and its cgroup's quota."""
    return joblib.cpu_count()


def reserve(n_threads: int) -> None:
    """Make room for `n_threads`, also for more than there are cores; call it before Numba's import.

    Raises ValueError if Numba is there already, with a smaller pool.
    """
    check(n_threads)
    if "numba" not in sys.modules:
        os.environ["NUMBA_NUM_THREADS"] = str(max(n_threads, size()))
    elif n_threads > size():
        raise ValueError(
            f"n_threads should be at most {size()}, the threads that Numba made room for when it "
            f"was imported, got {n_threads}; set NUMBA_NUM_THREADS={n_threads} before Python starts"
        )


def size() -> int:
    """The largest number of threads to be had: NUMBA_NUM_THREADS, or one for each core."""
    if numba := sys.modules.get("numba"):
        return numba.config.NUMBA_NUM_THREADS
    return int(os.environ.get("NUMBA_NUM_THREADS") or usable_cores())


@contextlib.contextmanager
def threads(n_threads: int | None = None):
    """Run parallel kernels called in the `with` block on so many threads; afterwards as before.

    None means one for each usable core. Raises ValueError if the pool is smaller.
    """
    n_threads = min(size(), usable_cores()) if n_threads is None else n_threads
    reserve(n_threads)
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(n_threads)
    try:
        yield n_threads
    finally:
        numba.set_num_threads(before)


def check(n_threads) -> None:
    """Raise ValueError unless `n_threads` is a whole number of at least 1."""
    if not isinstance(n_threads, int) or isinstance(n_threads, bool) or n_threads < 1:
        raise ValueError(f"n_threads should be a whole number of at least 1, got {n_threads!r}")
