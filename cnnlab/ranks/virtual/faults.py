"""Faults of a rank program, in the classes of the MPI Bugs Initiative, and how a run shows them.

Laurent, Saillard and Quinson, "The MPI Bugs Initiative", Correctness 2021. Here are those that one
run shows: deadlocks, leftovers and leaks; `examine` finds those that only a further run shows.
"""

import itertools
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

OWN = ("cnnlab.ranks.", "cnnlab.runtime.")  # modules whose lines are not the program's

CLASSES = {
    "invalid parameter": "an argument that no call may have",
    "parameter matching": "sender and receiver, or the ranks of a collective, disagree",
    "call matching": "a message or a collective that the other side never calls for",
    "request lifecycle": "a request that is never waited for",
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


class Deadlock(RuntimeError):
    """Ranks wait for each other, or for one that has ended."""


# --- errors and the lines that are to blame -------------------------------------------------------


def blamed(error: Exception, kind: str, rank: int, line: str) -> Exception:
    """The error, with the fault that it stands for as its `faults`."""
    error.faults = [Fault(kind, rank, line, str(error))]
    return error


def faults_of(error: Exception, rank: int) -> list[Fault]:
    """The faults that an error on a rank stands for; none, if it is the program's own error."""
    if hasattr(error, "faults"):
        return error.faults
    traced, line = error.__traceback__, ""
    while traced:
        own = traced.tb_frame.f_globals.get("__name__", "").startswith(OWN)
        if not own:
            line = written((traced.tb_frame.f_code.co_filename, traced.tb_lineno))
        traced = traced.tb_next
    return [Fault("invalid parameter", rank, line, str(error))] if own and line else []


def site() -> tuple[str, int]:
    """File and line of the program that has called into the world."""
    frame = sys._getframe(2)  # the call into the world is no closer than that
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(OWN):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def written(where: tuple[str, int]) -> str:
    """A site as "file:line"."""
    return f"{Path(where[0]).name}:{where[1]}"


# --- deadlock -------------------------------------------------------------------------------------


def deadlock(world) -> Deadlock:
    """The error that names the ranks of a world that wait: those in a circle first."""
    stuck = circle(world.waiting)
    stuck += [rank for rank in sorted(world.waiting) if rank not in stuck]
    reasons = "; ".join(reason(world, rank) for rank in stuck[:8])
    beside = next(filter(None, (misfit(world, rank) for rank in stuck)), "")
    error = Deadlock(f"deadlock: {reasons}{'; …' if len(stuck) > 8 else ''}{beside}")
    kind = "parameter matching" if beside else "call matching"
    return blamed(error, kind, stuck[0], written(world.waiting[stuck[0]][1]))


def misfit(world, rank: int) -> str:
    """The message for a rank from the one that it waits for, with another tag or communicator."""
    receive, _ = world.waiting[rank]
    of_program = receive.kind == "receive" and receive.group not in world.calls
    for send in world.mail.sends.get(rank, ()) if of_program else ():
        if send.group not in world.calls and (receive.any_source or send.rank == receive.peer):
            same = send.group == receive.group
            other = f"with tag {send.tag}" if same else "of another communicator"
            return f"; there is a message {other} from rank {send.rank}, {written(send.where)}"
    return ""


def circle(waiting: dict) -> list[int]:
    """Ranks each of which waits for the next, and the last for the first; [] if there are none.

    The one with the lowest number comes first.
    """
    for rank in sorted(waiting):
        path = [rank]
        while (peer := waiting[path[-1]][0].peer) in waiting:
            if peer == rank:
                return path
            if peer in path:
                break
            path.append(peer)
    return []


def reason(world, rank: int) -> str:
    """For whom a rank waits, for which message, and where."""
    (request, where), calls = world.waiting[rank], world.calls
    whom = "any rank" if request.any_source else f"rank {request.peer}"
    whom += " which has ended" if request.peer in world.ended else ""
    message = f"{request.kind}, tag {'any' if request.tag < 0 else request.tag}"
    message = f"in {calls[request.group].asked}" if request.group in calls else message
    return f"rank {rank} waits for {whom} ({message}, {written(where)})"


# --- what a run leaves behind ---------------------------------------------------------------------


def leftovers(world) -> list[Fault]:
    """Collectives that not all have called, messages not received, requests not waited for."""
    faults = [call.fault() for call in world.calls.values()]
    for send in itertools.chain(*world.mail.sends.values()):
        if send.group not in world.calls:
            text = f"a message to rank {send.peer} with tag {send.tag} that is never received"
            faults.append(Fault("call matching", send.rank, written(send.where), text))
    for request in itertools.chain(*world.open):
        text = f"a {request.kind} that is never waited for"
        faults.append(Fault("request lifecycle", request.rank, written(request.where), text))
    return faults


def leaks(world) -> list[Fault]:
    """Communicators and windows that are never freed."""
    left = sorted(world.resources.values(), key=lambda resource: resource[1])
    return [
        Fault("resource leak", rank, written(where), f"{name} is never freed")
        for name, rank, where in left
    ]


# --- what has happened before what ----------------------------------------------------------------


class History:
    """How many events of each rank come before what each rank does next; kept once it has begun.

    Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", CACM 1978; with a
    count for each rank, Mattern 1989. Messages carry the counts.
    """

    def __init__(self, n_ranks: int):
        self.n_ranks, self.known = n_ranks, None

    def begin(self) -> None:
        """Keep it from now on."""
        if self.known is None:
            self.known = np.zeros((self.n_ranks, self.n_ranks), np.int64)

    def seen_by(self, rank: int) -> np.ndarray | None:
        """The counts that a rank knows now, to be sent along."""
        return None if self.known is None else self.known[rank].copy()

    def learn(self, rank: int, counts: np.ndarray | None) -> None:
        """Add the counts that another rank knew to those that a rank knows."""
        if counts is not None:
            np.maximum(self.known[rank], counts, out=self.known[rank])

    def event(self, rank: int) -> int:
        """The number of a new event of a rank."""
        self.known[rank, rank] += 1
        return int(self.known[rank, rank])
