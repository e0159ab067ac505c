"""A parameter server that goes on without workers that are killed, and loses no image."""

import os
import sys
from collections.abc import Callable

import numpy as np

from cnnlab.distributed.pool import END, Pool
from cnnlab.distributed.server import SERVER, Server
from cnnlab.ranks.job import Lost, Survivors
from cnnlab.training.replica import Replica


class Returned(Pool):
    """A pool that takes back the pieces of workers that are lost, for others to draw.

    It is empty once no piece is left and none is out. Before, whoever draws in vain gets a piece
    of no images. `here` says which workers are not lost.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.out, self.returned = {}, []
        self.here = np.ones(self.n_workers, bool)

    @property
    def left(self) -> bool:
        """Whether there is a piece to draw."""
        return bool(self.returned) or self.drawn < self.n_images

    def draw(self, worker: int) -> tuple[int, int]:
        """A piece that has come back, or the next one."""
        if self.empty:
            return END
        if self.returned:
            piece, self.since[worker] = self.returned.pop(), self.clock()
        else:
            piece = super().draw(worker)
        self.out[worker] = piece
        self.empty = False
        return piece

    def back(self, worker: int, n_images: int) -> None:
        """A worker has done its piece."""
        super().back(worker, n_images)
        del self.out[worker]
        self.empty = not (self.left or self.out)

    def lose(self, worker: int) -> None:
        """Take back what a worker had."""
        self.here[worker] = False
        if worker in self.out:
            self.returned.append(self.out.pop(worker))
        self.empty = not (self.left or self.out)

    def share(self, worker: int) -> float:
        """The part of a batch that is for a worker, of those who are here."""
        done, seconds = self.done[self.here], self.seconds[self.here]
        if not seconds.all():
            return 1 / len(done)
        return self.done[worker] / self.seconds[worker] / (done / seconds).sum()


class Enduring(Server):
    """A server whose workers may be killed; the ranks must be under guard, see `ranks.guard`.

    A piece whose gradient has not come goes back to the pool, and nobody's epoch ends before all
    pieces are done. The server alone tests. The loss of an image counts if its gradient does.
    A killed server ends the job: it has the parameters. Raises ValueError for staleness 0.
    """

    pieces = Returned

    def __init__(self, comm, staleness: int | str = 1, compress: str | Callable | None = None):
        if staleness == 0:
            what = "expected a staleness of 1 or more, or any, with go-on"
            raise ValueError(f"--lost: {what}, as shares of a batch are fixed, got 0")
        super().__init__(Survivors(comm), staleness, compress)

    def begin(self, replica: Replica, order: np.ndarray) -> list[tuple[int, int]]:
        """Make the pool, and draw the first pieces; the server sends them to those who are left."""
        first, piece = super().begin(replica, order), np.empty(2, np.int64)
        if self.rank != SERVER:
            self.comm.Recv(piece, SERVER)
            return [tuple(piece.tolist())]
        for worker, drawn in enumerate(first):
            if worker + 1 in self.comm.lost:
                self.pool.lose(worker)
                first[worker] = END
            else:
                self.comm.Send(np.array(drawn), worker + 1)
        return first

    def take(self, *of) -> None:
        """Receive a gradient and apply it, or give back the piece of a worker that is lost."""
        try:
            super().take(*of)
        except Lost as lost:
            worker = lost.rank - 1
            self.pool.lose(worker)
            self.waiting.discard(worker)
            self.working.discard(worker)
        self.ledger.here = self.pool.here

    def may_go_on(self, worker: int) -> bool:
        """Whether there is a piece for a worker, which would not lead by too much."""
        return self.pool.left and super().may_go_on(worker)

    def share(self, n: int) -> slice:
        """Of n images for testing, all for the server: workers may be lost."""
        return slice(0, n if self.rank == SERVER else 0)

    def leave(self, status: int) -> int:
        """End this rank at once, after all output: the end of MPI would wait for the lost."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
