"""Failures that a user can mend: told in one line, with an exit status by kind."""

import contextlib
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

MENDABLE = ValueError, OSError, MemoryError, RuntimeError
MPIEXEC = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"  # it sets one of them to the number of ranks

interrupted_early = False  # a rank, by an interrupt that nobody has answered yet


def one_line(problem: BaseException) -> str:
    """The first line of a failure's message, with its kind where the message does not tell."""
    text = str(problem).strip().partition("\n")[0]
    if isinstance(problem, MemoryError):
        text = f"out of memory: {text}" if text else "out of memory"
    return text or type(problem).__name__


def status(problem: BaseException) -> int:
    """The exit status: 2 for a wrong argument, 1 for anything else, or the failure's own."""
    return getattr(problem, "status", 2 if isinstance(problem, ValueError) else 1)


def stop_in_one_line() -> None:
    """Let an interrupt end the program with one line and status 130, as while it imports modules.

    Some modules crash if an exception reaches them then. An interrupt that is ignored stays so. A
    rank only remembers it: were it to end before MPI starts, mpiexec and the others would go on.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def stop_by_exception() -> None:
    """Undo `stop_in_one_line`: an interrupt raises KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(*_) -> None:
    global interrupted_early
    if any(name in os.environ for name in MPIEXEC):
        interrupted_early = True
        return
    os.write(sys.stderr.fileno(), b"cnnlab: stopped\n")
    os._exit(130)


# --- the environment variable that makes measurements short ---------------------------------------

REPEATS = "CNNLAB_REPEATS"


def few(repeats: int) -> int:
    """How often to measure where `repeats` is asked: at most as the variable CNNLAB_REPEATS says.

    Lessons under test set it: their results do not depend on how often something is timed, only how
    sure the times are. Raises ValueError where it is no whole number of at least 1.
    """
    most = os.environ.get(REPEATS, str(repeats))
    if not most.isdecimal() or int(most) < 1:
        raise ValueError(f"{REPEATS}: expected a whole number of at least 1, got {most!r}")
    return min(repeats, int(most))


# --- waits of more than two seconds say what they wait for, on standard error ---------------------

AFTER = 2.0  # seconds
COMPILING = "compiling kernels, which are then kept: up to a minute"


def stream() -> TextIO:
    """Where progress is shown: stderr, but in a notebook, which takes that for an error, stdout."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return sys.stdout if hasattr(shell, "kernel") else sys.stderr


def bar(**how):
    """A progress bar of tqdm there, with what `how` says."""
    from tqdm import tqdm

    return tqdm(file=stream(), **how)


@contextlib.contextmanager
def telling(what: str, after: float | None = None) -> Iterator[None]:
    """Print `what` if the `with` block takes longer than `after` seconds (None: AFTER)."""
    # A line like that of a progress bar: stored lessons leave it out.
    say = functools.partial(print, f"\r{what}", file=stream(), flush=True)
    timer = threading.Timer(AFTER if after is None else after, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@functools.cache
def tell_of_compiling() -> None:
    """Let Numba say, once, that it compiles kernels, when that has taken AFTER seconds in all.

    Only those of cnnlab count: what a reader writes is not kept.
    """
    from numba.core import event

    class Listener(event.Listener):
        spent, depth = 0.0, 0

        def on_start(self, compiling):
            if not ours(compiling):
                return
            self.depth += 1
            if self.depth == 1 and self.spent < AFTER:  # a kernel, not one that it calls
                self.began, self.wait = time.monotonic(), telling(COMPILING, AFTER - self.spent)
                self.wait.__enter__()

        def on_end(self, compiled):
            if not ours(compiled):
                return
            self.depth -= 1
            if self.depth == 0 and self.spent < AFTER:
                self.wait.__exit__(None, None, None)
                self.spent += time.monotonic() - self.began

    def ours(compiling: event.Event) -> bool:
        return str(compiling.data["dispatcher"].py_func.__module__).startswith("cnnlab.")

    event.register("numba:compile", Listener())
