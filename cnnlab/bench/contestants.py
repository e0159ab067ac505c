"""What takes part in a measurement of whole training steps: a strategy, and what is like one."""

import numpy as np

from cnnlab.bench import machine, measure
from cnnlab.kernels import KERNELS, Strategy
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.network import Network, Parameters
from cnnlab.runtime import thread_pool
from cnnlab.training import RATE, Method, Replica, Sgd


class Contestant:
    """One way to train: `steps()` takes `n_steps` batches through forward, backward and update.

    For the time of one, see `steps.step_times`. A strategy that is not parallel runs on one thread,
    whatever `n_threads` says.
    """

    def __init__(self, strategy: Strategy, data, batch: int, n_threads: int = 1):
        self.strategy, self.batch = strategy, batch
        self.n_threads = n_threads if strategy.parallel else 1
        params = Network().parameters(0, strategy.dtype)
        images, labels = data.train_images, data.train_labels
        self.method = Method()
        self.replica = Replica(strategy, params, images, labels, batch, Sgd(RATE))
        self.n_steps = self.method.images_in_a_row(self.replica) // batch
        shuffled, self.position = np.random.default_rng(0).permutation(len(labels)), 0
        self.order = np.resize(shuffled, max(len(shuffled), self.n_steps * batch))

    @property
    def hardware(self) -> str | None:
        """What it runs on, in a few words."""
        return machine.describe()["cpu"]

    def next_batches(self) -> np.ndarray:
        """Numbers of the images of the next `n_steps` batches, round and round."""
        several = self.n_steps * self.batch
        if self.position + several > len(self.order):
            self.position = 0
        self.position += several
        return self.order[self.position - several : self.position]

    def steps(self) -> None:
        """Train on the next batches."""
        self.train(self.next_batches())

    def train(self, order: np.ndarray) -> None:
        """Train on the images number `order`."""
        with thread_pool.threads(self.n_threads):
            self.method.steps(self.replica, order)

    def gradients(self, x: np.ndarray, labels: np.ndarray) -> Parameters:
        """Gradients of a batch, summed, at the parameters as they are now."""
        with thread_pool.threads(self.n_threads):
            loss_and_gradients(self.strategy, self.replica.params, x, labels, self.replica.grads)
        return self.replica.grads

    def check(self) -> None:
        """Raise AssertionError unless the gradients and a step are those of the reference."""
        params, name = self.replica.params, self.strategy.name
        x, labels = self.replica.images[: self.batch], self.replica.labels[: self.batch]
        exact = exact_gradients(params, x, labels)
        measure.same(self.gradients(x, labels).flat, exact.flat, name=f"gradients of {name}")
        expected = params.flat - RATE / len(x) * exact.flat
        self.train(np.arange(len(x)))
        measure.same(params.flat, expected, name=f"parameters after a step of {name}")


def exact_gradients(params: Parameters, x: np.ndarray, labels: np.ndarray) -> Parameters:
    """Gradients of a batch, summed, by the reference in float64."""
    wide, grads = params.network.zeros(np.float64), params.network.zeros(np.float64)
    wide.flat[:] = params.flat
    loss_and_gradients(KERNELS["reference"], wide, x.astype(np.float64), labels, grads)
    return grads
