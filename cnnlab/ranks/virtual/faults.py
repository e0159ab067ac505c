"""What may be wrong with a rank program, in the classes of the MPI Bugs Initiative.

Laurent, Saillard and Quinson, "The MPI Bugs Initiative", Correctness 2021.
"""

import sys
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

OWN = ("cnnlab.ranks.", "cnnlab.runtime.")  # modules whose lines are not the program's

CLASSES = {
    "invalid parameter": "an argument that no call may have",
    "parameter matching": "sender and receiver, or the ranks of a collective, disagree",
    "call matching": "a message or a collective that the other side never calls for",
    "request lifecycle": "a request never waited for, or waited for twice",
    "local concurrency": "a buffer touched while a message uses it",
    "message race": "a receive from any source, and the order of arrival decides what happens",
    "global concurrency": "two ranks at one place of a window, at the same time",
    "buffering hazard": "it ends only because messages are small",
    "resource leak": "a communicator or window that is never freed",
}


class Fault(NamedTuple):
    """One of CLASSES, on which rank of the world, at which "file:line" of the program, and what."""

    kind: str
    rank: int
    line: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: rank {self.rank}, {self.line}: {self.text}"


class Faulty(RuntimeError):
    """A run came to its end and left what should not be: see its `faults`."""

    def __init__(self, faults: list[Fault]):
        more = f"; and {len(faults) - 4} more" if len(faults) > 4 else ""
        super().__init__("; ".join(map(str, faults[:4])) + more)
        self.faults = faults


def blamed(error: Exception, kind: str, rank: int, line: str) -> Exception:
    """The error, with the fault that it stands for as its `faults`."""
    error.faults = [Fault(kind, rank, line, str(error))]
    return error


def of(error: Exception, rank: int) -> list[Fault]:
    """The faults that an error on a rank stands for; none, if it is the program's own error."""
    if hasattr(error, "faults"):
        return error.faults
    traced, line = error.__traceback__, ""
    while traced:
        own = is_own(traced.tb_frame)
        if not own:
            line = written(place(traced))
        traced = traced.tb_next
    return [Fault("invalid parameter", rank, line, str(error))] if own and line else []


def is_own(frame) -> bool:
    """Whether a frame is of this package's ranks, and not of a program."""
    return frame.f_globals.get("__name__", "").startswith(OWN)


def place(traced: TracebackType) -> tuple[str, int]:
    """File and line of a step of a traceback."""
    return traced.tb_frame.f_code.co_filename, traced.tb_lineno


def site() -> tuple[str, int]:
    """File and line of the program that has called into the world."""
    frame = sys._getframe(2)  # the call into the world is no closer than that
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(OWN):  # is_own, faster
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def written(where: tuple[str, int]) -> str:
    """A site as "file:line"."""
    return f"{Path(where[0]).name}:{where[1]}"
