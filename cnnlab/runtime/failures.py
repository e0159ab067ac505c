"""Failures that a user can mend: told in one line, with an exit status by kind."""

import os
import signal
import sys

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
