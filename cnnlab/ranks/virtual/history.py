"""What has happened before what on virtual ranks: each knows how far it has heard of the others.

Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", CACM 1978; with a count
for each rank, Mattern 1989. Messages carry the counts; they are kept once there are windows.
"""

import numpy as np


class History:
    """Of n ranks: row r is how many events of each rank come before what rank r does next."""

    def __init__(self, n_ranks: int):
        self.n_ranks, self.known = n_ranks, None

    def begin(self) -> None:
        """Keep it from now on."""
        if self.known is None:
            self.known = np.zeros((self.n_ranks, self.n_ranks), np.int64)

    def of(self, rank: int) -> np.ndarray | None:
        """What a rank knows now, to be sent along."""
        return None if self.known is None else self.known[rank].copy()

    def learn(self, rank: int, told: np.ndarray | None) -> None:
        """A rank hears what another one knew."""
        if told is not None:
            np.maximum(self.known[rank], told, out=self.known[rank])

    def count(self, rank: int) -> int:
        """The number of a new event of a rank."""
        self.known[rank, rank] += 1
        return int(self.known[rank, rank])

    def is_before(self, event: int | None, of: int, rank: int) -> bool:
        """Whether a rank knows an event of another; None has not come to its end."""
        return event is not None and self.known[rank, of] >= event
