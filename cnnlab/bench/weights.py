"""Training with weights on a grid: what rounding them after each step leaves of the steps."""

from collections.abc import Callable

import numpy as np

from cnnlab.kernels import find
from cnnlab.network import Network, Parameters
from cnnlab.training import Replica, Sgd
from cnnlab.training.evaluate import predict

Rounding = Callable[[np.ndarray, np.ndarray], np.ndarray]


class OnGrid(Sgd):
    """Plain descent whose weights are rounded to multiples of `unit` after each step.

    `rounding(values, chances)` rounds float32 to whole numbers; chances lie in [0, 1).
    """

    loop = None

    def __init__(self, rate: float, unit: float, rounding: Rounding, seed: int = 0):
        super().__init__(rate)
        self.unit, self.rounding = unit, rounding
        self.rng = np.random.default_rng(seed)

    def update(self, params: Parameters, grads: Parameters, n_images: int) -> None:
        """Step along gradients summed over `n_images`, then round."""
        super().update(params, grads, n_images)
        chances = self.rng.random(params.flat.shape, np.float32)
        params.flat[:] = self.rounding(params.flat / self.unit, chances) * self.unit


def accuracy(
    data, optimizer: Sgd, *, epochs: int = 2, batch: int = 16, seed: int = 0, kernels="vector"
) -> float:
    """The test accuracy after some epochs on one core."""
    strategy, params = find(kernels), Network().parameters(seed)
    images, labels = data.train_images, data.train_labels
    of = Replica(strategy, params, images, labels, batch, optimizer)
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(len(images))
        for chosen in of.batches(order):
            of.gradients(chosen)
            of.update(len(chosen))
    return float((predict(strategy, params, data.test_images) == data.test_labels).mean())
