"""How many threads the parallel kernels run on.

Numba keeps one pool of threads for the whole process, made when it compiles the first parallel
kernel. A call uses as many of them as the calling Python thread has set.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

import joblib

from cnnlab.runtime.arguments import at_least

# Parallel kernels run one at a time: Numba's workqueue layer kills a process that is in two of them
# at once, and on the other layers two would only compete for the cores.
LOCK = threading.RLock()
MOST = 1024  # threads; each has half a megabyte of its own

_started_in: int | None = None  # the process that started the pool


def refuse_forked_child() -> None:
    """Raise RuntimeError in a child of `os.fork`, if its parent started the threads.

    GNU OpenMP, which Numba has on Linux, would end the child with a signal.
    """
    import numba

    global _started_in
    _started_in = _started_in or os.getpid()
    if _started_in == os.getpid() or sys.platform != "linux":
        return
    try:
        layer = numba.threading_layer()
    except ValueError:  # no parallel kernel has been compiled yet
        return
    if layer == "omp":
        raise RuntimeError(
            "threads: expected the process that started them, got a child that it forked; "
            'start it with multiprocessing.get_context("spawn")'
        )


def usable_cores() -> int:
    """Logical cores that this process may use, by its affinity and its cgroup's quota."""
    return joblib.cpu_count()


def reserve(n_threads: int) -> None:
    """Make room for `n_threads`, even more than there are cores; call it before importing Numba.

    Raises ValueError for more than MOST, or if Numba is imported already and its pool is smaller.
    """
    at_least("n_threads", n_threads, 1)
    if n_threads > MOST:
        raise ValueError(f"n_threads: expected at most {MOST}, got {n_threads}")
    if "numba" not in sys.modules:
        os.environ["NUMBA_NUM_THREADS"] = str(max(n_threads, size()))
    elif n_threads > size():
        raise ValueError(
            f"n_threads: expected at most {size()}, the size of the pool since Numba was imported, "
            f"got {n_threads}; set NUMBA_NUM_THREADS={n_threads} before Python starts"
        )


def size() -> int:
    """Threads in the pool: NUMBA_NUM_THREADS, or one for each core.

    Raises ValueError if that variable is no number.
    """
    if "numba" in sys.modules:
        import numba  # waits for a thread that is just importing it

        return numba.config.NUMBA_NUM_THREADS
    text = os.environ.get("NUMBA_NUM_THREADS") or str(usable_cores())
    at_least("NUMBA_NUM_THREADS", int(text) if text.isdecimal() else text, 1)
    return int(text)


@contextlib.contextmanager
def threads(n_threads: int | None = None) -> Iterator[int]:
    """Run the parallel kernels called in the `with` block on `n_threads`; yields that number.

    None means one thread for each usable core. Raises ValueError if the pool is smaller.
    """
    n_threads = min(size(), usable_cores()) if n_threads is None else n_threads
    reserve(n_threads)
    import numba

    global _started_in
    _started_in = _started_in or os.getpid()
    before = numba.get_num_threads()
    numba.set_num_threads(n_threads)
    try:
        yield n_threads
    finally:
        numba.set_num_threads(before)
