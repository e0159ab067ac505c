"""Parameter servers in two levels: one of each group of workers, and one of these servers."""

import numpy as np

from cnnlab.distributed.compression import Parcels
from cnnlab.distributed.pool import END
from cnnlab.distributed.server import SERVER, Server
from cnnlab.ranks.schedules import block
from cnnlab.runtime.arguments import at_least
from cnnlab.training.replica import Replica


class Group:
    """A server's workers, as the server above it knows a worker's replica: they share its pieces.

    `comm` has the server of the group as its rank 0, and the workers.
    """

    def __init__(self, comm, parcels: Parcels, replica: Replica):
        self.comm, self.parcels = comm, parcels
        self.params, self.grads, self.batch = replica.params, replica.grads, replica.batch

    def tell(self, rank: int, first: int, last: int) -> None:
        """Send a worker parameters and a piece of work."""
        self.comm.Send(np.append(self.params.flat, np.float32((first, last))), rank)

    def gradients(self, piece: np.ndarray) -> float:
        """Loss of consecutive images, int64 (n); gradients, added up in the order of the ranks."""
        begin, n_workers = piece[0] if len(piece) else 0, self.comm.size - 1
        for rank in range(1, self.comm.size):
            first, last = block(rank - 1, n_workers, len(piece))
            self.tell(rank, begin + first, begin + last)
        message, part, loss = self.parcels.empty(self.grads.flat), np.empty_like(self.grads.flat), 0
        self.grads.flat[:] = 0
        for rank in range(1, self.comm.size):
            self.comm.Recv(message, rank)
            loss += self.parcels.read(message, part)[0]
            self.grads.flat += part
        return loss

    def end(self) -> None:
        """Tell the workers that nothing is left."""
        for rank in range(1, self.comm.size):
            self.tell(rank, *END)


class Groups(Server):
    """Rank 0 serves the next `groups` ranks, each of which serves workers of its own.

    The server of a group gives each of its workers a share of a piece, adds their gradients up,
    and sends the sum to rank 0 as any worker does: groups may be stale, workers of a group wait for
    each other. Raises ValueError where a group would have no worker.
    """

    def __init__(self, comm, staleness: int | str = 0, groups: int = 2):
        super().__init__(comm, staleness)
        at_least("groups", groups, 1)
        if self.size < 1 + 2 * groups:
            what = f"at least {1 + 2 * groups} ranks for {groups} groups"
            raise ValueError(f"--groups: expected {what}, got {self.size}")
        self.n_groups, above = groups, self.rank <= groups
        of_group = (self.rank - 1) % groups + 1 if self.rank else 0
        self.inner, self.outer = comm.Split(of_group), comm.Split(int(above))
        self.top = Server(self.outer, staleness) if above else None

    def facts(self) -> dict[str, object]:
        """The number of groups, too, where it makes a difference."""
        return super().facts() | ({"groups": self.n_groups} if self.staleness else {})

    def step(self, replica: Replica, order: np.ndarray) -> float:
        """This rank's part, until all is applied; rank 0 tells the loss."""
        replica.check_order(order)
        if self.rank == SERVER:
            loss, self.ledger = self.top.serve(replica, order), self.top.ledger
            return loss
        if not self.top:
            return self.work(replica, order)
        group = Group(self.inner, self.parcels, replica)
        self.top.work(group, np.arange(len(order)))
        group.end()
        return 0.0

    steps = step

    def work(self, replica: Replica, order: np.ndarray) -> float:
        """Wait for parameters and a share of a piece, and send its gradient, until none is left."""
        params, grads = replica.params.flat, replica.grads.flat
        told, message = np.empty(params.size + 2, params.dtype), self.parcels.empty(grads)
        while True:
            self.inner.Recv(told, 0)
            params[:], piece = told[:-2], tuple(map(int, told[-2:]))
            if piece == END:
                return 0.0
            loss = replica.gradients(order[slice(*piece)])
            self.parcels.write(message, grads, loss, 0, *piece)
            self.inner.Send(message, 0)

    def close(self) -> None:
        """Free the communicators of the two levels."""
        self.inner.Free()
        self.outer.Free()
