"""Ways to train in which each rank has a whole model of its own, and models are averaged."""

import numpy as np

from cnnlab.distributed.holder import check_apart
from cnnlab.runtime.arguments import at_least
from cnnlab.training.method import IN_A_ROW, Together
from cnnlab.training.replica import Replica


class Averaging(Together):
    """The base of these methods: a rank steps along its share of the batch, in its own model.

    In the first of every `every` steps, `meet` moves the model towards those of other ranks. All of
    a step begins at the old values: the gradient is taken there, `meet` sends them, and the update
    comes last. After an epoch, `result` is what is tested. A checkpoint keeps it, and the model and
    optimiser's state of every rank.
    """

    def __init__(self, comm, every: int):
        super().__init__(comm)
        at_least("every", every, 1)
        self.every, self.n_steps, self._of = every, 0, None

    def meet(self, replica: Replica) -> None:
        """Move the parameters of this rank towards those of others; all ranks call it."""
        raise NotImplementedError

    def result(self, models: np.ndarray) -> np.ndarray:
        """What an epoch leaves, of the models of all ranks (P, n): the same on each of them."""
        return models.mean(0)

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        """One step on this rank's share of the batch `chosen`; its loss."""
        if self._of is not replica:
            self.enter(replica)
        mine = chosen[self.share(len(chosen))]
        loss = replica.gradients(mine)
        if self.n_steps % self.every == 0:
            self.meet(replica)
        if len(mine):
            replica.update(len(mine))
        self.n_steps += 1
        return loss

    def make_room(self, replica: Replica) -> None:
        """Every rank's model and state: at first those of the replica."""
        own = self.own(replica)
        self.kept = {name: np.stack([array] * self.size) for name, array in own.items()}
        self._of = None

    def facts(self) -> dict[str, object]:
        """How often ranks meet; and how many there are, where each has kept something."""
        return {"every": self.every} | ({"ranks": self.size} if self.kept else {})

    def enter(self, replica: Replica) -> None:
        """Before the first step of an epoch: this rank's model and state take their places."""
        check_apart(replica.strategy)
        if not self.kept:
            self.make_room(replica)
        self.begin(replica)
        self._of, self.n_steps = replica, 0
        own = self.own(replica)
        for name, models in self.kept.items():
            own[name][...] = models[self.rank]

    def begin(self, replica: Replica) -> None:
        """An epoch begins; the parameters are still those that the last one has left."""

    def gather(self, replica: Replica) -> None:
        """After an epoch: keep the models and states of all ranks, and bring `result` to each."""
        for name, array in self.own(replica).items():
            self.kept[name][:] = self.comm.allgather(array)
        replica.params.flat[:] = self.result(self.kept["model of ranks"])
        self._of = None

    def own(self, replica: Replica) -> dict[str, np.ndarray]:
        """This rank's model and state, by their names in `kept`."""
        own = {"model": replica.params.flat, **replica.optimizer.state}
        return {f"{name} of ranks": array for name, array in own.items()}

    def loop(self, replica: Replica) -> None:
        """No compiled loop: Python leads each step."""

    def images_in_a_row(self, replica: Replica) -> int:
        """How many images one call of `steps` takes: ranks add up their loss after them."""
        return max(1, IN_A_ROW // replica.batch) * replica.batch
