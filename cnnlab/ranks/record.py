"""What ranks did and sent, and when."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class Event(NamedTuple):
    """What a rank did from `begin` to `end`, in seconds: "compute", "send", "receive" or "wait".

    A send has a `peer` and a number of bytes.
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
