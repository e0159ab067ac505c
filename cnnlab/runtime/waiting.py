"""Waits of more than two seconds say what they wait for, on standard error."""

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Iterator

AFTER = 2.0  # seconds
COMPILING = "compiling kernels, which are then kept: up to a minute"


@contextlib.contextmanager
def told(what: str, after: float | None = None) -> Iterator[None]:
    """Print `what` if the `with` block takes longer than `after` seconds (None: AFTER)."""
    timer = threading.Timer(AFTER if after is None else after, say, [what])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def say(what: str) -> None:
    """Print a line to standard error; like a progress bar, stored lessons leave it out."""
    print(f"\r{what}", file=sys.stderr, flush=True)


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
                self.began, self.wait = time.monotonic(), told(COMPILING, AFTER - self.spent)
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
