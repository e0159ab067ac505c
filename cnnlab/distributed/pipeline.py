"""Pipeline parallelism: each rank holds some of the layers, and micro-batches pass through them."""

import numpy as np

from cnnlab.distributed.holder import Holder, Part
from cnnlab.distributed.piece import Piece
from cnnlab.distributed.pipe import Pipe, stages
from cnnlab.ranks import Alone
from cnnlab.ranks.pipeline_schedules import SCHEDULES, plan
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
