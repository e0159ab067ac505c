"""Several parameter servers: each keeps a block of the parameters, and none is the bottleneck."""

import copy

import numpy as np

from cnnlab.distributed.holder import Flat
from cnnlab.distributed.pool import END, Shares
from cnnlab.distributed.server import SERVER, Server
from cnnlab.ranks.schedules import block
from cnnlab.runtime.arguments import at_least
from cnnlab.training.replica import Replica


class Shard:
    """A block of a replica's parameters, as a server knows a replica; it shares their memory."""

    def __init__(self, replica: Replica, mine: slice):
        self.params, self.grads = Flat(replica.params.flat[mine]), Flat(replica.grads.flat[mine])
        self.batch, self.optimizer = replica.batch, copy.copy(replica.optimizer)
        shape = replica.params.flat.shape
        state = replica.optimizer.state.items()
        self.optimizer.state = {k: a[mine] if a.shape == shape else a for k, a in state}
        self.optimizer.begin(self.params)

    def update(self, n_images: int) -> None:
        """Step along the block's gradients, which are summed over `n_images`."""
        self.optimizer.update(self.params, self.grads, n_images)


class Followed(Shares):
    """A pool from which another server draws: empty, as far as is known, once all has come."""

    def draw(self, worker: int) -> tuple[int, int]:
        """No images, for as long as there may be a piece."""
        return END if self.empty else (0, 0)

    def back(self, worker: int, n_images: int) -> None:
        """A worker has done a piece of so many images."""
        self.n_images -= n_images
        self.empty = self.n_images == 0


class Servers(Server):
    """The first `servers` ranks keep a block of the parameters each, and clocks of their own.

    A worker sends each of them its part of a gradient, and goes on once all have replied; so the
    staleness bounds what it sees of every block. Rank 0 alone hands out pieces of work. Without
    staleness, all take the steps of one server, to the bit. Raises ValueError without a worker.
    """

    def __init__(self, comm, staleness: int | str = 0, servers: int = 2):
        super().__init__(comm, staleness)
        at_least("servers", servers, 1)
        if servers >= self.size:
            what = f"fewer servers than the {self.size} ranks"
            raise ValueError(f"--servers: expected {what}, got {servers}")
        self.n_servers, self.n_workers = servers, self.size - servers
        self.worker = self.rank - servers

    def facts(self) -> dict[str, object]:
        """The number of servers, too, where it makes a difference."""
        return super().facts() | ({"servers": self.n_servers} if self.staleness else {})

    def blocks(self, replica: Replica) -> list[slice]:
        """Which of the parameters each server keeps."""
        n = replica.params.flat.size
        return [slice(*block(server, self.n_servers, n)) for server in range(self.n_servers)]

    @property
    def follows(self) -> bool:
        """Whether another server decides who gets which piece."""
        return bool(self.staleness) and self.rank != SERVER

    def work(self, replica: Replica, order: np.ndarray) -> float:
        """Send the parts of a gradient, wait for those of the parameters, until none is left."""
        params, grads, blocks = replica.params.flat, replica.grads.flat, self.blocks(replica)
        replies = [np.empty(params[mine].size + 2, params.dtype) for mine in blocks]
        messages = [self.parcels.empty(grads[mine]) for mine in blocks]
        *_, piece = self.begin(replica, order)
        while piece != END:
            loss = replica.gradients(order[slice(*piece)])
            requests = [self.comm.Irecv(reply, server) for server, reply in enumerate(replies)]
            for server, mine in enumerate(blocks):
                self.parcels.write(messages[server], grads[mine], loss, self.worker, *piece)
                requests.append(self.comm.Isend(messages[server], server, self.call))
            for request in requests:
                request.Wait()
            for mine, reply in zip(blocks, replies, strict=True):
                params[mine] = reply[:-2]
            piece = tuple(map(int, replies[SERVER][-2:]))
        return 0.0

    def serve(self, replica: Replica, order: np.ndarray) -> float:
        """Serve this rank's block; rank 0 tells the loss."""
        loss = super().serve(Shard(replica, self.blocks(replica)[self.rank]), order)
        return loss if self.rank == SERVER else 0.0

    def begin(self, replica: Replica, order: np.ndarray) -> list[tuple[int, int]]:
        """Make the pool, or what follows it, and draw the first pieces: the same on all ranks."""
        first = super().begin(replica, order)
        if self.follows:
            self.pool = Followed(len(order), self.pool.batch, self.n_workers, self.clock)
        return first

    def take(self, *of) -> None:
        """Receive a part of a gradient; once all has come, nobody else works."""
        super().take(*of)
        if self.follows and self.pool.empty:
            self.working &= self.waiting

    def gather(self, replica: Replica) -> None:
        """After an epoch, bring each server's parameters and optimiser's state to all."""
        shape = replica.params.flat.shape
        for array in (replica.params.flat, *replica.optimizer.state.values()):
            parts = self.blocks(replica) if array.shape == shape else [slice(None)]
            for server, mine in enumerate(parts):
                self.comm.Bcast(array[mine], server)
