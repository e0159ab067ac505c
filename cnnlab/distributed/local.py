"""Local SGD: ranks step on their own, and average their models now and then."""

import numpy as np

from cnnlab.distributed.averaging import Averaging
from cnnlab.training.replica import Replica


class Local(Averaging):
    """Each rank takes `every` steps on its shares of the batches; then all models are averaged.

    A model counts by the images it has learned from since the last average: with plain gradient
    descent and `every` = 1 this is data parallelism, up to rounding, also for a last, smaller batch
    (Stich, Local SGD converges fast and communicates little, 2019). The optimiser's state is
    averaged in the same way. An epoch ends with an average: there all ranks have the same
    model, which is all that a checkpoint holds, and any number of ranks may go on from it.
    """

    def __init__(self, comm, every: int = 8):
        super().__init__(comm, every)

    def make_room(self, replica: Replica) -> None:
        """Nothing: between epochs all ranks have the same model and state."""
        self._of = None

    def begin(self, replica: Replica) -> None:
        """No images yet since the last average: of this rank, and of all."""
        self.n_mine = self.n_all = 0

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        """One step on this rank's share of the batch `chosen`; its loss."""
        loss = super().step(replica, chosen)
        self.n_mine += len(chosen[self.share(len(chosen))])
        self.n_all += len(chosen)
        if self.n_steps % self.every == 0:
            self.average(replica)
        return loss

    def meet(self, replica: Replica) -> None:
        """Not before the step, but after it: see `step`."""

    def average(self, replica: Replica) -> None:
        """Replace model and state by their means over the ranks, weighed by images."""
        for array in self.own(replica).values():
            mine = array * array.dtype.type(self.n_mine / self.n_all)
            self.comm.Allreduce(mine, array)
        self.n_mine = self.n_all = 0

    def gather(self, replica: Replica) -> None:
        """After an epoch: the average, unless the last step was followed by one."""
        if self.n_all:
            self.average(replica)
        self._of = None
