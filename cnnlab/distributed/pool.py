"""Which images a worker gets next: equal shares of each batch, or pieces of a pool by pace."""

from collections.abc import Callable

import numpy as np

from cnnlab.ranks.schedules import block

END = -1, -1  # instead of the first image and the one after the last: nothing is left


class Shares:
    """Images 0..n_images in batches, and every worker draws its share of each.

    `empty` says whether nothing is left for anybody, as far as is known; `clock` tells seconds.
    """

    def __init__(self, n_images: int, batch: int, n_workers: int, clock: Callable[[], float]):
        self.n_images, self.batch, self.n_workers, self.clock = n_images, batch, n_workers, clock
        self.rounds, self.empty = np.zeros(n_workers, int), n_images == 0

    def draw(self, worker: int) -> tuple[int, int]:
        """The first image of a piece of work, and the one after its last; or END."""
        first = self.rounds[worker] * self.batch
        if first >= self.n_images:
            return END
        begin, end = block(worker, self.n_workers, self.size(self.rounds[worker]))
        self.rounds[worker] += 1
        return first + begin, first + end

    def back(self, worker: int, n_images: int) -> None:
        """A worker has done a piece of so many images."""

    def size(self, number: int) -> int:
        """The images of a batch: fewer in the last one."""
        return min(self.batch, self.n_images - number * self.batch)


class Pool(Shares):
    """Images 0..n_images, drawn in pieces until none is left: about a `batch`, if each draws once.

    The faster a worker has been so far, in images over seconds, the longer its piece: a slow one
    comes back sooner than with equal pieces. Until all have come back once, pieces are equal.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.drawn, (self.since, self.seconds, self.done) = 0, np.zeros((3, self.n_workers))

    def draw(self, worker: int) -> tuple[int, int]:
        """The next piece."""
        if self.empty:
            return END
        first, length = self.drawn, max(1, round(self.share(worker) * self.batch))
        self.drawn, self.since[worker] = min(first + length, self.n_images), self.clock()
        self.empty = self.drawn == self.n_images
        return first, self.drawn

    def back(self, worker: int, n_images: int) -> None:
        """Note how long the worker has had its piece."""
        self.seconds[worker] += self.clock() - self.since[worker]
        self.done[worker] += n_images

    def share(self, worker: int) -> float:
        """The part of a batch that is for a worker."""
        if not self.seconds.all():
            return 1 / self.n_workers
        pace = self.done / self.seconds
        return pace[worker] / pace.sum()
