"""A parameter server: rank 0 keeps the parameters, the others send it gradients."""

import math
from collections.abc import Callable

import numpy as np

from cnnlab.distributed import compression
from cnnlab.distributed.compression import Parcels
from cnnlab.distributed.holder import check_apart
from cnnlab.distributed.ledger import Ledger
from cnnlab.distributed.pool import END, Pool, Shares
from cnnlab.ranks import mpi
from cnnlab.runtime.arguments import at_least
from cnnlab.training.method import Together
from cnnlab.training.replica import Replica

SERVER = 0  # its rank


class Server(Together):
    """A worker at clock c, which has taken c steps, sends a gradient and waits for parameters.

    It gets them, and a piece of work, once everyone has taken c − `staleness` steps: they hold all
    gradients up to clock c − staleness − 1, and its own (stale synchronous parallel: Ho and others,
    2013). Staleness 0 is synchronous: pieces are shares of a batch, and the server takes the steps
    of one rank. Beyond it, workers draw from a `Pool`, and gradients are applied as they arrive;
    "any" lets nobody wait. `ledger` tells what has happened; `compress` is what workers send, see
    `Parcels`. Raises ValueError for one rank, and for stale steps of an optimiser with state.
    """

    pieces = Pool

    def __init__(self, comm, staleness: int | str = 0, compress: str | Callable | None = None):
        super().__init__(comm)
        if staleness != "any":
            at_least("staleness", staleness, 0)
        if self.size < 2:
            raise ValueError(f"ranks: expected a server and a worker or more, got {self.size} rank")
        self.staleness = math.inf if staleness == "any" else staleness
        self.n_servers, self.n_workers, self.worker = 1, self.size - 1, self.rank - 1
        self.compress, self.ledger, self.call = compress, None, 0
        self.parcels = Parcels(comm, compress)

    def make_room(self, replica: Replica) -> None:
        """Room for residuals of compressors; an optimiser's state must go with the staleness."""
        check_apart(replica.strategy)
        if self.staleness and replica.optimizer.state:
            keeps = f"one that keeps {' and '.join(replica.optimizer.state)}"
            raise ValueError(f"optimizer: expected sgd, as gradients are stale, got {keeps}")
        self.kept = (
            compression.room(self.parcels, replica.params.flat.size) if self.compress else {}
        )

    def facts(self) -> dict[str, object]:
        """The staleness, the compressor and the ranks, where they make a difference."""
        found = {"compress": self.compress} if isinstance(self.compress, str) else {}
        found |= {"staleness": str(self.staleness)} if self.staleness else {}
        return found | ({"ranks": self.size} if self.staleness or self.kept else {})

    def epoch(self, replica: Replica, order: np.ndarray, tell: Callable) -> float:
        """The loss of an epoch: that of all workers, summed."""
        compression.load(self.parcels, self.kept)
        tell(loss := self.total(self.steps(replica, order)), len(order))
        return loss

    def step(self, replica: Replica, order: np.ndarray) -> float:
        """Serve, or work on pieces of `order`, until all is applied; the server tells the loss."""
        replica.check_order(order)
        return self.work(replica, order) if self.worker >= 0 else self.serve(replica, order)

    steps = step

    def begin(self, replica: Replica, order: np.ndarray) -> list[tuple[int, int]]:
        """Make the pool, and draw the first pieces: the same on all ranks, so nobody sends them."""
        self.call = (self.call + 1) % 32768  # a tag: some may be at the next call already
        draw_from, batch = self.pieces if self.staleness else Shares, min(replica.batch, len(order))
        self.pool = draw_from(len(order), batch, self.n_workers, self.clock)
        drawn_here = range(self.worker + 1 if self.worker >= 0 else self.n_workers)
        return [self.pool.draw(worker) for worker in drawn_here]

    def work(self, replica: Replica, order: np.ndarray) -> float:
        """Send the gradient of a piece, wait for parameters and another one, until none is left."""
        params, grads = replica.params.flat, replica.grads.flat
        reply, message = np.empty(params.size + 2, params.dtype), self.parcels.empty(grads)
        *_, piece = self.begin(replica, order)
        while piece != END:
            loss = replica.gradients(order[slice(*piece)])
            self.parcels.write(message, grads, loss, self.worker, *piece)
            self.comm.Send(message, SERVER, self.call)
            self.comm.Recv(reply, SERVER)
            params[:], piece = reply[:-2], tuple(map(int, reply[-2:]))
        return 0.0

    def serve(self, replica: Replica, order: np.ndarray) -> float:
        """Apply gradients as they arrive, and send parameters to those who may go on."""
        params, first = replica.params.flat, self.begin(replica, order)
        self.working = {worker for worker in range(self.n_workers) if first[worker] != END}
        self.parts = np.empty((self.n_workers, params.size), params.dtype)
        self.ledger, self.waiting = Ledger(self.n_workers, len(order)), set()
        message, gradient = self.parcels.empty(params), np.empty_like(params)
        while self.working:
            self.take(replica, message, gradient)
            for ready in sorted(w for w in self.waiting if self.pool.empty or self.may_go_on(w)):
                self.waiting.remove(ready)
                if not self.reply(replica, ready):
                    self.working.remove(ready)
        return self.ledger.losses.sum()

    def take(self, replica: Replica, message: np.ndarray, gradient: np.ndarray) -> None:
        """Receive a gradient from anybody, and apply it."""
        self.comm.Recv(message, mpi.ANY_SOURCE, self.call)
        loss, worker, first, last = self.parcels.read(message, gradient)
        self.pool.back(worker, last - first)
        self.ledger.losses[worker] += loss
        self.apply(replica, worker, slice(first, last), gradient)
        self.waiting.add(worker)

    def may_go_on(self, worker: int) -> bool:
        """Whether a worker would lead by no more than the staleness."""
        return self.ledger.leads(worker) <= self.staleness

    def reply(self, replica: Replica, worker: int) -> bool:
        """Send a worker parameters and a piece of work; whether there was one."""
        piece = self.pool.draw(worker)
        if piece != END:
            self.ledger.goes_on(worker)
        self.comm.Send(np.append(replica.params.flat, np.float32(piece)), worker + self.n_servers)
        return piece != END

    def apply(self, replica: Replica, worker: int, images: slice, gradient: np.ndarray) -> None:
        """Take a gradient in; without staleness, step once those of all workers are there."""
        self.ledger.applied(worker, images, together=not self.staleness)
        clocks, self.parts[worker] = self.ledger.clocks, gradient
        if self.staleness:
            replica.grads.flat[:] = gradient
            replica.update(self.pool.batch)
        elif np.ptp(clocks) == 0:  # in the order of ranks, not of arrival: the same bits each time
            np.sum(self.parts, axis=0, out=replica.grads.flat)
            replica.update(self.pool.size(clocks[0] - 1))

    def gather(self, replica: Replica) -> None:
        """After an epoch, bring the server's parameters and the optimiser's state to all."""
        for array in (replica.params.flat, *replica.optimizer.state.values()):
            self.comm.Bcast(array, SERVER)
        compression.store(self.parcels, self.kept)
