"""A parameter server: some ranks keep the parameters, the others, workers, send them gradients.

A worker's clock is the number of its gradients that have been applied. A server replies with
parameters and the next piece of work once that clock is at most `staleness` ahead of the slowest
one's (stale synchronous parallel: Ho and others, 2013). Lesson 54 has that on half a page.
"""

import math
import os
import sys
from collections.abc import Callable

import numpy as np

from cnnlab.distributed import compression
from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.holder import Part, check_apart
from cnnlab.ranks import mpi
from cnnlab.ranks.job import LOST, Lost, Survivors
from cnnlab.ranks.schedules import block
from cnnlab.runtime.arguments import at_least, one_of
from cnnlab.training.method import Together
from cnnlab.training.replica import Replica

FIRST = 0  # the rank of the only server, or of the one that hands out the pieces
END = -1, -1  # in place of a piece, the first image and the one after the last: nothing is left
HEAD = 4  # numbers before a gradient: its loss, worker, first image, and the one after the last


class BatchShares:
    """The images 0..n_images in batches, of which each worker draws its share.

    `left` says whether there is a piece to draw now, `here` (W) which workers are not lost.
    """

    left = True

    def __init__(self, n_images: int, batch: int, n_workers: int):
        self.n_images, self.batch, self.n_workers = n_images, batch, n_workers
        self.rounds, self.here = np.zeros(n_workers, int), np.ones(n_workers, bool)

    @property
    def empty(self) -> bool:
        """Whether nobody will get a piece any more, as far as is known."""
        return self.n_images == 0

    def draw(self, worker: int) -> tuple[int, int]:
        """The first image of the worker's next piece and the one after its last, or END."""
        first = self.rounds[worker] * self.batch
        if first >= self.n_images:
            return END
        begin, end = block(worker, self.n_workers, self.size(self.rounds[worker]))
        self.rounds[worker] += 1
        return first + begin, first + end

    def back(self, worker: int, n_images: int) -> None:
        """The gradient of a worker's piece of so many images has come."""

    def size(self, number: int) -> int:
        """The images of a batch: fewer in the last one."""
        return min(self.batch, self.n_images - number * self.batch)


class PiecePool(BatchShares):
    """The images 0..n_images, drawn in pieces until none is left: about a batch, if each draws one.

    The faster a worker has been so far, in images over seconds of `clock()`, the longer its piece.
    With `keeps` the pool is empty only when all pieces have come back, so that those of lost
    workers can be drawn again; who draws before and in vain gets a piece of no images.
    """

    def __init__(self, n_images: int, batch: int, n_workers: int, clock: Callable, keeps: bool):
        super().__init__(n_images, batch, n_workers)
        self.clock, self.keeps, self.drawn = clock, keeps, 0
        self.out, self.returned = {}, []  # pieces, by worker, and those of lost workers
        self.since, self.seconds, self.done = np.zeros((3, n_workers))

    @property
    def left(self) -> bool:
        return bool(self.returned) or self.drawn < self.n_images

    @property
    def empty(self) -> bool:
        return not (self.left or (self.keeps and self.out))

    def draw(self, worker: int) -> tuple[int, int]:
        if self.empty:
            return END
        if self.returned:
            piece = self.returned.pop()
        else:
            first, size = self.drawn, max(1, round(self.share(worker) * self.batch))
            piece = first, min(first + size, self.n_images)
            self.drawn = piece[1]
        self.out[worker], self.since[worker] = piece, self.clock()
        return piece

    def back(self, worker: int, n_images: int) -> None:
        self.seconds[worker] += self.clock() - self.since[worker]
        self.done[worker] += n_images
        del self.out[worker]

    def lose(self, worker: int) -> None:
        """Take back the piece of a worker that is lost."""
        self.here[worker] = False
        if worker in self.out:
            self.returned.append(self.out.pop(worker))

    def share(self, worker: int) -> float:
        """The part of a batch that is for a worker; equal ones until all have come back once."""
        done, seconds = self.done[self.here], self.seconds[self.here]
        if not seconds.all():
            return 1 / len(done)
        return self.done[worker] / self.seconds[worker] / (done / seconds).sum()


class Followed(BatchShares):
    """A pool from which another server draws: empty once the gradients of all images have come."""

    def draw(self, worker: int) -> tuple[int, int]:
        return END if self.empty else (0, 0)  # the other server sends the piece

    def back(self, worker: int, n_images: int) -> None:
        self.n_images -= n_images


class Parcels:
    """Messages of bytes, all of one length: HEAD numbers of 8 bytes, and a gradient.

    `compress` names one of COMPRESSORS; with None gradients go whole, in their own precision. Each
    rank has a compressor, with its residual; that of the server only decodes.
    """

    def __init__(self, comm, compress: str | None):
        self.comm, self.compressors = comm, []
        self.make = compress and compressor(compress)

    def begin(self, n: int) -> None:
        """Make this rank's compressor for n numbers."""
        self.compressors = [self.make(n, self.comm.rank)]
        if self.compressors[0].streams:
            raise ValueError("compress: expected messages of one length, got streams")

    def empty(self, like: np.ndarray) -> np.ndarray:
        """Room for a message of a gradient such as `like`, uint8."""
        if self.make and not self.compressors:
            self.begin(like.size)
        n_bytes = self.compressors[0].n_bytes if self.make else like.nbytes
        return np.empty(8 * HEAD + n_bytes, np.uint8)

    def write(self, message: np.ndarray, gradient: np.ndarray, loss: float, *head: int) -> None:
        """Put a gradient (n), its loss and HEAD − 1 whole numbers into a message."""
        message[:8] = np.array([loss], np.float64).view(np.uint8)
        message[8 : 8 * HEAD] = np.array(head, np.int64).view(np.uint8)
        if self.make:
            gradient = self.compressors[0].encode(gradient.astype(np.float32, copy=False))
        message[8 * HEAD :] = gradient.view(np.uint8)

    def read(self, message: np.ndarray, gradient: np.ndarray) -> list[float]:
        """Write what a message stands for to `gradient` (n); return its HEAD numbers."""
        if self.make:
            decoded = np.empty(gradient.size, np.float32)
            self.compressors[0].decode(message[8 * HEAD :], decoded)
            gradient[:] = decoded
        else:
            gradient.view(np.uint8)[:] = message[8 * HEAD :]
        return message[:8].view(np.float64).tolist() + message[8 : 8 * HEAD].view(np.int64).tolist()


class Server(Together):
    """The first `servers` ranks keep a block of the parameters each; the others are workers.

    Staleness 0 is synchronous: pieces are shares of a batch, and the servers take the steps of one
    rank, to the same bits each time. Beyond it, workers draw from a `PiecePool`, and gradients are
    applied as they arrive; with "any" no worker waits. Each server keeps clocks of its own; rank 0
    hands out the pieces. `compress` is for gradients, see `Parcels`. With `lost` "go-on" workers
    may be killed, if the ranks are under guard, see `ranks.job`. On a server `clocks` (W) counts
    the gradients applied of each worker in the latest epoch, and `losses` (W) adds theirs up.
    Raises ValueError without a worker, for options that exclude each other, and in `make_room` for
    stale steps of an optimiser with state.
    """

    def __init__(
        self,
        comm,
        staleness: int | str = 0,
        compress: str | None = None,
        servers: int = 1,
        lost: str = "end",
    ):
        one_of("lost", lost, LOST)
        at_least("servers", servers, 1)
        if staleness != "any":
            at_least("staleness", staleness, 0)
        self.enduring, wrong = lost == "go-on", None
        if servers > 1 and (compress or self.enduring):
            other = "--lost go-on" if self.enduring else "--compress"
            wrong = f"--servers: expected no {other} with it, got both"
        elif self.enduring and staleness == 0:
            what = "a staleness of 1 or more, or any, with go-on, as shares of a batch are fixed"
            wrong = f"--lost: expected {what}, got 0"
        elif servers >= comm.size:
            what = f"{servers + 1} or more, for a worker beside --servers {servers}"
            wrong = f"ranks: expected {what}, got {comm.size}"
        if wrong:
            raise ValueError(wrong)
        super().__init__(Survivors(comm) if self.enduring else comm)
        self.staleness = math.inf if staleness == "any" else staleness
        self.n_servers, self.n_workers = servers, self.size - servers
        self.worker = self.rank - servers
        self.follows = bool(staleness) and 0 < self.rank < servers
        self.compress, self.parcels = compress, Parcels(self.comm, compress)
        self.call = 0

    def make_room(self, replica: Replica) -> None:
        """Room for residuals of compressors; an optimiser's state must go with the staleness."""
        check_apart(replica.strategy)
        if self.staleness and replica.optimizer.state:
            keeps = f"one that keeps {' and '.join(replica.optimizer.state)}"
            raise ValueError(f"optimizer: expected sgd, as gradients are stale, got {keeps}")
        self.kept = compression.room(self.compress and self.parcels, replica.params.flat.size)

    def facts(self) -> dict[str, object]:
        """The compressor, the staleness and the ranks, where they make a difference."""
        same = {"compress": self.compress} if self.compress else {}
        if self.staleness:
            same["staleness"] = str(self.staleness)
        if self.staleness and self.n_servers > 1:
            same["servers"] = self.n_servers
        return same | ({"ranks": self.size} if self.staleness or self.kept else {})

    def epoch(self, replica: Replica, order: np.ndarray, tell: Callable) -> float:
        """The loss of an epoch: that of all workers, summed."""
        compression.load(self.parcels, self.kept)
        tell(loss := self.total(self.steps(replica, order)), len(order))
        return loss

    def step(self, replica: Replica, order: np.ndarray) -> float:
        """Serve, or work on pieces of `order`, until all is applied; rank 0 returns the loss."""
        replica.check_order(order)
        return self.work(replica, order) if self.worker >= 0 else self.serve(replica, order)

    steps = step

    def blocks(self, n: int) -> list[slice]:
        """Which of n parameters each server keeps."""
        return [slice(*block(server, self.n_servers, n)) for server in range(self.n_servers)]

    def begin(self, replica: Replica, order: np.ndarray) -> list[tuple[int, int]]:
        """Make the pool, and draw the first pieces: the same on all ranks, so nobody sends them."""
        self.call = (self.call + 1) % 32768  # a tag: some may be at the next call already
        size = len(order), min(replica.batch, len(order)), self.n_workers
        self.pool = (
            PiecePool(*size, self.clock, self.enduring) if self.staleness else BatchShares(*size)
        )
        drawn_here = range(self.worker + 1 if self.worker >= 0 else self.n_workers)
        first = [self.pool.draw(worker) for worker in drawn_here]
        if self.follows:
            self.pool = Followed(*size)
        return first

    def work(self, replica: Replica, order: np.ndarray) -> float:
        """Send the gradient of a piece, wait for parameters and another one, until none is left."""
        params, grads = replica.params.flat, replica.grads.flat
        blocks = self.blocks(params.size)
        replies = [np.empty(params[mine].size + 2, params.dtype) for mine in blocks]
        messages = [self.parcels.empty(grads[mine]) for mine in blocks]
        *_, piece = self.begin(replica, order)
        while piece != END:
            loss = replica.gradients(order[slice(*piece)])
            for message, mine in zip(messages, blocks, strict=True):
                self.parcels.write(message, grads[mine], loss, self.worker, *piece)
            self.exchange(messages, replies)
            for reply, mine in zip(replies, blocks, strict=True):
                params[mine] = reply[:-2]
            piece = tuple(map(int, replies[FIRST][-2:]))
        return 0.0

    def exchange(self, messages: list[np.ndarray], replies: list[np.ndarray]) -> None:
        """Send each server its message, and wait for all replies."""
        if self.n_servers == 1:
            self.comm.Send(messages[FIRST], FIRST, self.call)
            self.comm.Recv(replies[FIRST], FIRST)
            return
        requests = [self.comm.Irecv(reply, server) for server, reply in enumerate(replies)]
        requests += [self.comm.Isend(parts, k, self.call) for k, parts in enumerate(messages)]
        for request in requests:
            request.Wait()

    def serve(self, replica: Replica, order: np.ndarray) -> float:
        """Apply gradients as they arrive, and send parameters to those who may go on."""
        first = self.begin(replica, order)
        shard = Part(replica, self.blocks(replica.params.flat.size)[self.rank])
        for rank in self.comm.lost if self.enduring else ():
            self.pool.lose(rank - 1)
            first[rank - 1] = END
        self.working = {worker for worker in range(self.n_workers) if first[worker] != END}
        self.clocks, self.losses = np.zeros(self.n_workers, np.int64), np.zeros(self.n_workers)
        self.waiting = set()
        message, gradient = self.parcels.empty(shard.params.flat), np.empty_like(shard.params.flat)
        self.parts = np.empty((self.n_workers, gradient.size), gradient.dtype)
        while self.working:
            self.take(shard, message, gradient)
            if self.follows and self.pool.empty:
                self.working &= self.waiting  # the others had nothing left to send
            for ready in sorted(filter(self.may_go_on, self.waiting)):
                self.waiting.remove(ready)
                if not self.reply(shard, ready):
                    self.working.remove(ready)
        return self.losses.sum() if self.rank == FIRST else 0.0

    def take(self, shard: Part, message: np.ndarray, gradient: np.ndarray) -> None:
        """Receive a gradient from anybody and apply it; or take back a lost worker's piece."""
        try:
            self.comm.Recv(message, mpi.ANY_SOURCE, self.call)
        except Lost as lost:
            self.pool.lose(lost.rank - 1)
            self.waiting.discard(lost.rank - 1)
            self.working.discard(lost.rank - 1)
            return
        loss, worker, first, last = self.parcels.read(message, gradient)
        self.pool.back(worker, last - first)
        self.losses[worker] += loss
        self.apply(shard, worker, gradient)
        self.waiting.add(worker)

    def lead(self, worker: int) -> int:
        """By how many steps a worker is ahead of the slowest one that is not lost."""
        return int(self.clocks[worker] - self.clocks[self.pool.here].min())

    def may_go_on(self, worker: int) -> bool:
        """Whether a worker that waits gets an answer: a piece within the staleness, or the end."""
        return self.pool.empty or (self.pool.left and self.lead(worker) <= self.staleness)

    def reply(self, shard: Part, worker: int) -> bool:
        """Send a worker parameters and a piece of work; whether there was one."""
        piece = self.pool.draw(worker)
        self.comm.Send(np.append(shard.params.flat, np.float32(piece)), worker + self.n_servers)
        return piece != END

    def apply(self, shard: Part, worker: int, gradient: np.ndarray) -> None:
        """Take a gradient in; without staleness, step once those of all workers are there."""
        self.clocks[worker] += 1
        self.parts[worker] = gradient
        if self.staleness:
            shard.grads.flat[:] = gradient
            shard.update(self.pool.batch)
        elif np.ptp(self.clocks) == 0:  # in the order of ranks, not of arrival: the same bits
            np.sum(self.parts, axis=0, out=shard.grads.flat)
            shard.update(self.pool.size(self.clocks[0] - 1))

    def gather(self, replica: Replica) -> None:
        n = replica.params.flat.size
        for array in (replica.params.flat, *replica.optimizer.state.values()):
            for server, mine in enumerate(self.blocks(n) if array.shape == (n,) else [...]):
                self.comm.Bcast(array[mine], server)
        compression.store(self.parcels, self.kept)

    def share(self, n: int) -> slice:
        """This rank's block of n images for testing; all on rank 0 where workers may be lost."""
        if self.enduring:
            return slice(0, n if self.rank == FIRST else 0)
        return super().share(n)

    def leave(self, status: int) -> int:
        """End a rank whose workers may be lost at once: the end of MPI would wait for them."""
        if self.enduring:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        return status
