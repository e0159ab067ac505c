"""Contestants whose data stay on the device."""

import numpy as np

from cnnlab import cuda
from cnnlab.bench import measure
from cnnlab.bench.contestants import exact_gradients
from cnnlab.cuda.resident import Call, OnDevice


class Resident:
    """A way to train on the device: `steps()` makes its next `n_steps` steps and waits for them.

    `call` makes `n_calls` of them. On a GPU `n_steps` are an epoch: waiting after every step would
    cost as much as the step. After the last image comes the first.
    """

    n_threads = 1

    def __init__(self, step: OnDevice, call: Call, n_calls: int, data):
        self._step, self._call, self._data = step, call, data
        self.batch, self.hardware = step.batch, cuda.where()
        self._n_calls = n_calls
        self._calls = step.steps_an_epoch // n_calls if cuda.gpu()[0] else 1
        self.n_steps = self._calls * n_calls

    def steps(self) -> None:
        """Make the next `n_steps` training steps."""
        for _ in range(self._calls):
            self._call()
        cuda.wait()

    def check(self) -> None:
        """Raise AssertionError unless gradients agree with the reference, and a call with steps."""
        step = self._step
        step.again()
        x, labels = self._data.train_images[: self.batch], self._data.train_labels[: self.batch]
        exact = exact_gradients(step.parameters(), x.astype(np.float32), labels)
        with step.undone():
            step()
            cuda.wait()
            measure.same(step.gradients().flat, exact.flat, name="gradients on the device")
            for _ in range(self._n_calls - 1):
                step()
            expected = step.parameters().flat
        with step.undone():
            self._call()
            measure.same(step.parameters().flat, expected, name="parameters on the device")
