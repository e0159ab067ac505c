"""Contestants: ways to train whose steps are timed against each other."""

import numpy as np

from cnnlab.bench import machine, measure
from cnnlab.kernels import KERNELS, Strategy
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.network import Network, Parameters
from cnnlab.runtime import thread_pool
from cnnlab.training import RATE, Method, Replica, Sgd


class Contestant:
    """A strategy that trains the report's network: `steps()` makes its next `n_steps` steps.

    A step is forward, backward and update on one batch; `step_times` gives the time of one. A
    strategy that is not parallel runs on one thread, whatever `n_threads` says.
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
        """The name of the processor or device; None if unknown."""
        return machine.describe()["cpu"]

    def next_batches(self) -> np.ndarray:
        """The image numbers of the next `n_steps` batches, from the start again after the last."""
        several = self.n_steps * self.batch
        if self.position + several > len(self.order):
            self.position = 0
        self.position += several
        return self.order[self.position - several : self.position]

    def steps(self) -> None:
        """Make the next `n_steps` training steps."""
        self.train(self.next_batches())

    def train(self, order: np.ndarray) -> None:
        """Train on the images numbered in `order`, a batch at a time."""
        with thread_pool.threads(self.n_threads):
            self.method.steps(self.replica, order)

    def gradients(self, x: np.ndarray, labels: np.ndarray) -> Parameters:
        """Gradients of a batch, summed over its images, at the current parameters."""
        with thread_pool.threads(self.n_threads):
            loss_and_gradients(self.strategy, self.replica.params, x, labels, self.replica.grads)
        return self.replica.grads

    def check(self) -> None:
        """Raise AssertionError unless gradients and a step agree with the reference."""
        params, name = self.replica.params, self.strategy.name
        x, labels = self.replica.images[: self.batch], self.replica.labels[: self.batch]
        exact = exact_gradients(params, x, labels)
        measure.same(self.gradients(x, labels).flat, exact.flat, name=f"gradients of {name}")
        expected = params.flat - RATE / len(x) * exact.flat
        self.train(np.arange(len(x)))
        measure.same(params.flat, expected, name=f"parameters after a step of {name}")


def exact_gradients(params: Parameters, x: np.ndarray, labels: np.ndarray) -> Parameters:
    """Gradients of a batch, summed over its images, by the reference in float64."""
    wide, grads = params.network.zeros(np.float64), params.network.zeros(np.float64)
    wide.flat[:] = params.flat
    loss_and_gradients(KERNELS["reference"], wide, x.astype(np.float64), labels, grads)
    return grads
