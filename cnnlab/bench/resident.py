"""Contestants whose data stay on the device."""

import numpy as np

from cnnlab import cuda
from cnnlab.bench import measure
from cnnlab.bench.contestants import exact_gradients
from cnnlab.cuda.step import Call, Step


class Resident:
    """A way to train on the device: `steps()` makes its next `n_steps` steps and waits for them.

    On a GPU these are a whole epoch: waiting after every step would cost as much as the step.
    """

    n_threads = 1

    def __init__(self, step: Step, call: Call, data):
        self._step, self._call, self._data = step, call, data
        self.batch, self._left = step.batch, step.steps_an_epoch
        self.n_steps = step.steps_an_epoch if cuda.gpu()[0] else 1
        self.hardware = cuda.where()

    def steps(self) -> None:
        """Make the next `n_steps` training steps, from the first batch again after the last."""
        for _ in range(self.n_steps):
            if self._left == 0:
                self._begin()
            self._call()
            self._left -= 1
        cuda.wait()

    def _begin(self) -> None:
        """Start again at the first batch."""
        self._step.start(range(len(self._data.train_labels)))
        self._left = self._step.steps_an_epoch

    def check(self) -> None:
        """Raise AssertionError unless the gradients of a batch agree with the reference."""
        self._begin()
        x, labels = self._data.train_images[: self.batch], self._data.train_labels[: self.batch]
        exact = exact_gradients(self._step.parameters(), x.astype(np.float32), labels)
        self._call()
        cuda.wait()
        self._begin()
        measure.same(self._step.gradients().flat, exact.flat, name="gradients on the device")
