"""What one rank trains with: its copy of the parameters, and the images to learn from."""

from collections.abc import Callable, Iterator

import numpy as np

from cnnlab.kernels.composition import check_step, fused_or_composed
from cnnlab.kernels.contract import Strategy, check_array, check_labels
from cnnlab.network import Parameters
from cnnlab.runtime.arguments import at_least
from cnnlab.training.optimizers import Sgd

Loop = Callable[[np.ndarray], float]


class Replica:
    """A strategy, parameters with a place for their gradients, and images with their labels.

    Parameters
    ----------
    strategy : Strategy, which computes the gradients
    params : Parameters of its dtype; training changes them
    images, labels : (M,C,H,W) and int64 (M); they stay as they are
    batch : images of a step, over all ranks together
    optimizer : one of OPTIMIZERS, made with its rate; it begins here, unless it has begun before

    `grads` holds the latest step. Raises ValueError or TypeError where these do not go together.
    """

    def __init__(
        self,
        strategy: Strategy,
        params: Parameters,
        images: np.ndarray,
        labels: np.ndarray,
        batch: int,
        optimizer: Sgd,
    ):
        at_least("batch", batch, 1)
        self.strategy, self.params, self.batch, self.optimizer = strategy, params, batch, optimizer
        self.grads = params.network.zeros(strategy.dtype)
        self.images, self.labels = images.astype(strategy.dtype, copy=False), labels
        check_step(strategy, params, strategy.take(self.images, [0]), labels[[0]], self.grads)
        check_labels(labels, params.network.classes)
        if len(labels) != len(images):
            raise ValueError(f"labels: expected {len(images)}, one an image, got {len(labels)}")
        optimizer.begin(params)
        # Compiled code finds images where they lie, if it knows their kind of array.
        self.in_place = images.flags.carray and labels.flags.carray

    def gradients(self, chosen: np.ndarray) -> float:
        """Loss of the images number `chosen`, summed; their gradients, summed, go to `grads`.

        There may be none of them: then both are zero. Nothing is checked.
        """
        if len(chosen) == 0:
            self.grads.flat[:] = 0
            return 0.0
        if self.in_place:
            batch = self.images, self.labels, self.grads, chosen
        else:
            batch = self.strategy.take(self.images, chosen), self.labels[chosen], self.grads
        with self.strategy.lock:
            return fused_or_composed(self.strategy, self.params, *batch)

    def update(self, n_images: int) -> None:
        """Step along `grads`, which are summed over `n_images`."""
        self.optimizer.update(self.params, self.grads, n_images)

    def batches(self, order: np.ndarray) -> Iterator[np.ndarray]:
        """The image numbers of `order`, a batch at a time; ValueError if one is out of range."""
        self.check_order(order)
        for first in range(0, len(order), self.batch):
            yield order[first : first + self.batch]

    def loop(
        self, workers=None, grads: Parameters | None = None, alone: bool = False
    ) -> Loop | None:
        """The strategy's compiled steps: a function of `order` that returns the summed loss.

        None where the strategy has none for this network and optimiser, so that Python leads.
        `workers` share each batch, see `kernels.workers`; `grads` is the place for the gradients,
        if it is not that of the replica. `alone` says that nobody shares the batches, or could.
        """
        name, network = self.optimizer.loop, self.params.network
        steps = self.strategy.fused(name, network) if name and self.in_place else None
        if steps is None or (self.strategy.alone and not alone):
            return None
        shared = (workers,) if workers else ()
        held = self.params, grads or self.grads, self.images, self.labels

        def run(order: np.ndarray) -> float:
            self.check_order(order)
            with self.strategy.lock:
                return float(steps(*held, order, self.batch, float(self.optimizer.rate), *shared))

        return run

    def check_order(self, order: np.ndarray) -> None:
        """Check that `order` numbers images of the replica."""
        check_array("order", order, np.int64)
        if len(order) and not (0 <= order.min() and order.max() < len(self.images)):
            raise ValueError(
                f"order: expected numbers of images 0..{len(self.images) - 1}, got {order}"
            )
