"""Elastic averaging: every rank's model hangs on a spring to a common centre."""

import numpy as np

from cnnlab.distributed.averaging import Averaging
from cnnlab.training.replica import Replica

TOGETHER = 0.9  # the share of the way to the ranks' mean that the centre goes


class Elastic(Averaging):
    """A model moves a share `moving_rate` of its way to the centre, and pulls the centre as far.

    With α for `moving_rate`, every rank's model x and the centre c, which all ranks keep:

        x ← x − α (x − c) − rate × gradient at x        c ← c + α Σ (x − c)

    All right-hand sides have the *old* values, so that the two pulls are equal and opposite (Zhang,
    Choromanska and LeCun, Deep learning with elastic averaging SGD, 2015). Ranks meet every `every`
    steps. The centre is what has been learned: it is tested, and begins the next epoch with the
    ranks' own models. Raises ValueError unless 0 < α ≤ 2 / (P + 1): a meeting of P ranks multiplies
    the way from the centre to the mean of their models by 1 − (P + 1) α.
    """

    def __init__(self, comm, every: int = 8, moving_rate: float | None = None):
        super().__init__(comm, every)
        self.moving_rate = TOGETHER / self.size if moving_rate is None else moving_rate
        most = 2 / (self.size + 1)
        if not 0 < self.moving_rate <= most:
            raise ValueError(
                f"moving_rate: expected a number above 0, at most {most:.3g} "
                f"for {self.size} ranks, got {self.moving_rate!r}"
            )

    def facts(self) -> dict[str, object]:
        """The moving rate, too."""
        return super().facts() | {"moving_rate": self.moving_rate}

    def begin(self, replica: Replica) -> None:
        """The centre is what the last epoch has left."""
        self.centre = replica.params.flat.copy()

    def meet(self, replica: Replica) -> None:
        """Pull this rank's model and the centre towards each other."""
        pull = self.moving_rate * (replica.params.flat - self.centre)
        pulls = np.empty_like(pull)
        self.comm.Allreduce(pull, pulls)
        replica.params.flat -= pull
        self.centre += pulls

    def result(self, models: np.ndarray) -> np.ndarray:
        """The centre."""
        return self.centre
