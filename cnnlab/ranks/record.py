"""What ranks did and sent, and when: of virtual ranks and of real ones in the same form."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class Event(NamedTuple):
    """What a rank did from `begin` to `end`, in seconds: "compute", "send", "receive" or "wait".

    Of a real rank that is known by its messages, what lies "between" them is whatever else it did.
    A send has a `peer` and a number of bytes, and so has a real rank's receive.
    """

    rank: int
    kind: str
    begin: float
    end: float
    peer: int = -1
    n_bytes: int = 0


class Message(NamedTuple):
    """A message, from the begin of its send to the end of its receive, in seconds."""

    source: int
    to: int
    n_bytes: int
    begin: float
    end: float


@dataclass
class Record:
    """A run of `size` ranks, for the pictures of `cnnlab.plots.ranks`.

    `network` describes that of virtual ranks.
    """

    size: int
    events: list[Event] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    virtual: bool = False
    network: str = ""

    def by_pair(self) -> tuple[np.ndarray, np.ndarray]:
        """How many messages, and how many bytes, each rank (row) sent to each other (column)."""
        counts, sums = np.zeros((2, self.size, self.size), int)
        for message in self.messages:
            counts[message.source, message.to] += 1
            sums[message.source, message.to] += message.n_bytes
        return counts, sums

    def seconds(self, *kinds: str) -> np.ndarray:
        """How long each rank did this, in seconds (size,)."""
        spent = np.zeros(self.size)
        for event in self.events:
            if event.kind in kinds:
                spent[event.rank] += event.end - event.begin
        return spent

    def span(self) -> tuple[float, float]:
        """The first begin and the last end, in seconds; of no event, 0 and 0."""
        times = [time for event in self.events for time in (event.begin, event.end)]
        return min(times, default=0.0), max(times, default=0.0)


# --- from the log of each rank --------------------------------------------------------------------


def record(logs: Sequence[Sequence[Event]]) -> Record:
    """What ranks did, from the log of each: between two messages they computed.

    Times count from the first of all.
    """
    zero = min((event.begin for log in logs for event in log), default=0.0)
    moved = [[e._replace(begin=e.begin - zero, end=e.end - zero) for e in log] for log in logs]
    events = [event for log in moved for event in [*log, *gaps(log)]]
    messages = [
        Message(rank, peer, out.n_bytes, out.begin, back.end)
        for rank, peer, out, back in pairs(moved)
    ]
    return Record(len(logs), events, messages)


def pairs(logs: Sequence[Sequence[Event]]) -> Iterator[tuple[int, int, Event, Event]]:
    """Of each message: who sends it to whom, the send and the receive."""

    def between(log: Sequence[Event], kind: str, peer: int) -> list[Event]:
        return [event for event in log if (event.kind, event.peer) == (kind, peer)]

    for rank, log in enumerate(logs):
        for peer in sorted({event.peer for event in log if event.kind == "send"}):
            both = between(log, "send", peer), between(logs[peer], "receive", rank)
            for out, back in zip(*both, strict=True):
                yield rank, peer, out, back


def gaps(log: Sequence[Event]) -> list[Event]:
    """What lies between the events of a rank: computing, as a rule."""
    log = sorted(log, key=lambda event: event.begin)
    done = itertools.accumulate((event.end for event in log), max)  # a wait may lie in another
    pairs = zip(done, log[1:], strict=False)
    return [Event(e.rank, "between", end, e.begin) for end, e in pairs if e.begin > end]


class Wait(NamedTuple):
    """A rank that began to receive before the message was being sent, and for how many seconds."""

    rank: int
    peer: int
    seconds: float


def waits(logs: Sequence[Sequence[Event]]) -> list[Wait]:
    """Who waited for whom, the longest first, from the log of each rank."""
    late = [Wait(peer, rank, out.begin - back.begin) for rank, peer, out, back in pairs(logs)]
    return sorted((wait for wait in late if wait.seconds > 0), key=lambda wait: -wait.seconds)
