"""Pipeline parallelism: each rank holds some of the layers, and micro-batches pass through them."""

import numpy as np

from cnnlab.distributed.holder import Holder, Part
from cnnlab.distributed.model import Piece
from cnnlab.distributed.pipe import Pipe, stages
from cnnlab.ranks import Alone
from cnnlab.ranks.pipeline import SCHEDULES, plan
from cnnlab.ranks.schedules import block
from cnnlab.training.replica import Replica


class Pipeline(Holder):
    """A batch passes through the ranks' stages as `n_micro` micro-batches, ordered by a schedule.

    Their gradients add up to those of the batch. Here a stage's layers are whole; `Hybrid` cuts
    them, too.
    """

    def __init__(self, comm, schedule: str = "1f1b", n_micro: int = 8):
        super().__init__(comm)
        self.schedule, self.n_micro = schedule, n_micro
        self.plan = plan(schedule, self.size, n_micro)
        self.line, self.layer, self.by = comm, Alone(), "features"

    def cut(self, replica: Replica) -> np.ndarray:
        """The positions of the parameters of this rank's stages."""
        network, size, rank = replica.params.network, self.line.size, self.line.rank
        n_stages = size * SCHEDULES[self.schedule].chunks
        cuts = stages(network, n_stages)
        self.pieces = {
            s: Piece(network, replica.strategy, cuts[s], cuts[s + 1], self.layer, self.by)
            for s in range(rank, n_stages, size)
        }
        self.pipe = Pipe(self.line, self.plan[rank], self.pieces, n_stages)
        return np.concatenate([piece.positions for piece in self.pieces.values()])

    def begin(self, part: Part) -> None:
        """Let each stage compute with its share of the part's arrays."""
        n = 0
        for piece in self.pieces.values():
            mine = slice(n, n + len(piece.positions))
            piece.hold(part.params.flat[mine], part.grads.flat[mine])
            n = mine.stop

    def gradients(self, replica: Replica, part: Part, chosen: np.ndarray) -> float:
        """Loss of a batch, told by the last stage; gradients of this rank's stages."""
        x, labels = replica.strategy.take(replica.images, chosen), replica.labels[chosen]
        loss = self.pipe.gradients(x, labels)
        for piece in self.pieces.values():
            piece.add_shared()
        return loss


# --- three ways at once, on a grid of ranks: data × pipeline × model parallelism ------------------

Grid = tuple[int, int, int]


class Hybrid(Pipeline):
    """A grid of d × p × m ranks: d pipelines of p stages each, and m ranks within each layer.

    Each pipeline takes a share of every batch. Rank (i, j, k) is i p m + j m + k, so that those who
    talk most, within a layer, are neighbours.
    """

    def __init__(
        self,
        comm,
        grid: Grid,
        schedule: str = "1f1b",
        n_micro: int = 8,
        cut: str = "features",
    ):
        Holder.__init__(self, comm)
        d, p, m = grid
        if d * p * m != comm.size:
            raise ValueError(
                f"grid: expected data × pipeline × model to be the {comm.size} ranks, "
                f"got {d} × {p} × {m} = {d * p * m}"
            )
        i, j, k = np.unravel_index(self.rank, (d, p, m))
        self.data = comm.Split(j * m + k)  # the same part of the network, other images
        self.line = comm.Split(i * m + k)  # the same images, other stages
        self.layer = comm.Split(i * p + j)  # the same images and stage
        self.n_micro = n_micro if p > 1 else 1  # one stage has no bubble to fill
        self.schedule, self.by = schedule, cut
        self.plan = plan(schedule, p, self.n_micro)

    def close(self) -> None:
        """Free the communicators of the grid."""
        for comm in (self.data, self.line, self.layer):
            comm.Free()

    def gradients(self, replica: Replica, part: Part, chosen: np.ndarray) -> float:
        """Loss of this pipeline's share of a batch; gradients of the whole batch."""
        share = slice(*block(self.data.rank, self.data.size, len(chosen)))
        loss = super().gradients(replica, part, chosen[share])
        if self.data.size > 1:
            mine = part.grads.flat.copy()
            self.data.Allreduce(mine, part.grads.flat)
        return loss
