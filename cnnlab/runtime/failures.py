"""Failures that a user can mend: told in one line, with an exit status by kind."""

MENDABLE = ValueError, OSError, MemoryError, RuntimeError


def one_line(problem: BaseException) -> str:
    """The first line of a failure's message, with its kind where the message does not tell."""
    text = str(problem).strip().partition("\n")[0]
    if isinstance(problem, MemoryError):
        text = f"out of memory: {text}" if text else "out of memory"
    return text or type(problem).__name__


def status(problem: BaseException) -> int:
    """The exit status: 2 for a wrong argument, 1 for anything else, or the failure's own."""
    return getattr(problem, "status", 2 if isinstance(problem, ValueError) else 1)
