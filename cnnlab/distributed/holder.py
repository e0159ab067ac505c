"""Ways to train in which a rank holds a part of the parameters, and of the optimiser's state."""

import copy
from types import SimpleNamespace

import numpy as np

from cnnlab.kernels import KERNELS, Strategy
from cnnlab.training.method import Together
from cnnlab.training.replica import Replica


class Part:
    """What a rank holds: its parameters, their gradients, and an optimiser with their state.

    `positions` are theirs in the replica: numbers, which copy, or a slice, which shares memory.
    """

    def __init__(self, replica: Replica, positions: np.ndarray | slice):
        self.positions = positions
        self.params = SimpleNamespace(flat=replica.params.flat[positions])
        self.grads = SimpleNamespace(flat=np.zeros_like(self.params.flat))
        whole, self.optimizer = replica.params.flat, copy.copy(replica.optimizer)
        self.optimizer.state = {  # that of each parameter; any other is that of all
            name: array[positions] if array.shape == whole.shape else array
            for name, array in replica.optimizer.state.items()
        }
        self.optimizer.begin(self.params)

    def update(self, n_images: int) -> None:
        """Step along the gradients, which are summed over `n_images`."""
        self.optimizer.update(self.params, self.grads, n_images)


class Holder(Together):
    """The base of these methods: `cut` says what a rank holds, `gradients` finds its gradients.

    In an epoch a rank steps along its own part; between epochs `gather` brings all parts to all.
    """

    def __init__(self, comm):
        super().__init__(comm)
        self._of = self._part = None

    def cut(self, replica: Replica) -> np.ndarray:
        """The positions of the parameters that this rank holds; ValueError where it cannot be."""
        raise NotImplementedError

    def gradients(self, replica: Replica, part: Part, chosen: np.ndarray) -> float:
        """Loss of a batch, of which each rank tells its part; the gradients go to `part`."""
        raise NotImplementedError

    def part(self, replica: Replica) -> Part:
        """What this rank holds of a replica, cut when first asked for."""
        if self._of is not replica:
            check_apart(replica.strategy)
            self._part, self._of = Part(replica, self.cut(replica)), replica
            self.begin(self._part)
        return self._part

    def begin(self, part: Part) -> None:
        """The part is there: take what is needed of it."""

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        part = self.part(replica)
        part.grads.flat[:] = 0
        loss = self.gradients(replica, part, chosen)
        part.update(len(chosen))
        return loss

    def loop(self, replica: Replica) -> None:
        """No compiled loop: Python leads each step."""

    def gather(self, replica: Replica) -> None:
        """Bring every rank's parameters and state to all; the next epoch cuts them afresh."""
        part = self.part(replica)
        mine = part.positions, part.params.flat, part.optimizer.state
        for positions, flat, state in self.comm.allgather(mine):
            replica.params.flat[positions] = flat
            for name, array in state.items():
                whole = replica.optimizer.state[name]
                whole[positions if whole.shape == replica.params.flat.shape else ...] = array
        self._of = self._part = None


def check_apart(strategy: Strategy) -> None:
    """Raise ValueError for kernels that all ranks must call together."""
    if strategy.together:
        apart = ", ".join(name for name, group in KERNELS.items() if not group.together)
        raise ValueError(
            f"kernels: expected one of {apart}, as ranks differ in what they compute, "
            f"got {strategy.name}"
        )
