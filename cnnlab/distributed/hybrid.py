"""Three ways at once, on a grid of ranks: data × pipeline × model parallelism."""

import numpy as np

from cnnlab.distributed.holder import Holder, Part
from cnnlab.distributed.pipeline import Pipeline
from cnnlab.ranks.pipeline_schedules import plan
from cnnlab.ranks.schedules import block
from cnnlab.training.replica import Replica

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
