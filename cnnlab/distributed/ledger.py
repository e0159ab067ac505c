"""What a parameter server has done, so that its promises can be kept and checked."""

from collections import Counter

import numpy as np


class Ledger:
    """What the server has done in its latest epoch, for W workers and N images.

    `clocks` int64 (W) counts the gradients applied of each worker, `losses` (W) adds theirs up, and
    `times` int64 (N) counts how often the gradient of an image was applied. `lead` is by how many
    steps a worker was ahead of the slowest, at most, when it went on; `seen` int64 (W) is how many
    gradients were in the parameters that a worker has, and `missed` counts gradients by how many of
    others were applied between such parameters and them. `here` (W) says who is not lost.
    """

    def __init__(self, n_workers: int, n_images: int):
        self.clocks, self.seen = np.zeros((2, n_workers), np.int64)
        self.losses, self.here = np.zeros(n_workers), np.ones(n_workers, bool)
        self.times, self.lead, self.missed = np.zeros(n_images, np.int64), 0, Counter()

    def leads(self, worker: int) -> int:
        """By how many steps a worker is ahead of the slowest."""
        return int(self.clocks[worker] - self.clocks[self.here].min())

    def goes_on(self, worker: int) -> None:
        """A worker has got parameters and a piece of work."""
        self.lead, self.seen[worker] = max(self.lead, self.leads(worker)), self.clocks.sum()

    def applied(self, worker: int, images: slice, together: bool) -> None:
        """A gradient of these images has been taken in; `together`: in one step with all others."""
        self.missed[0 if together else int(self.clocks.sum() - self.seen[worker])] += 1
        self.times[images] += 1
        self.clocks[worker] += 1

    def faults(self, staleness: float) -> list[str]:
        """What is wrong at the end of an epoch; empty if nothing is."""
        found = []
        if (wrong := np.flatnonzero(self.times != 1)).size:
            what = f"expected 1 gradient applied, got {self.times[wrong[0]]}"
            found.append(f"image {wrong[0]}: {what}; {wrong.size} such images")
        if self.lead > staleness:
            found.append(f"lead: expected at most {staleness} steps, got {self.lead}")
        return found
