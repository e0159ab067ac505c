"""Training steps whose data stay on the device, as contestants."""

import numpy as np

from cnnlab import cuda
from cnnlab.bench import measure
from cnnlab.bench.contestants import exact_gradients
from cnnlab.cuda.step import Call, Step


class Resident:
    """One way to train: `steps()` makes `n_steps` training steps and waits for the last.

    On a GPU that is an epoch of the set, since waiting after each step would be half of its time.
    """

    n_threads = 1

    def __init__(self, step: Step, call: Call, data):
        self._step, self._call, self._data = step, call, data
        self.batch, self._left = step.batch, step.steps_an_epoch
        self.n_steps = step.steps_an_epoch if cuda.gpu()[0] else 1
        self.hardware = cuda.where()

    def steps(self) -> None:
        """Train on the next batches, round and round through the set."""
        for _ in range(self.n_steps):
            if self._left == 0:
                self._begin()
            self._call()
            self._left -= 1
        cuda.wait()

    def _begin(self) -> None:
        self._step.start(range(len(self._data.train_labels)))
        self._left = self._step.steps_an_epoch

    def check(self) -> None:
        """Raise AssertionError unless the gradients of a batch are those of the reference."""
        self._begin()
        x, labels = self._data.train_images[: self.batch], self._data.train_labels[: self.batch]
        exact = exact_gradients(self._step.parameters(), x.astype(np.float32), labels)
        self._call()
        cuda.wait()
        self._begin()
        measure.same(self._step.gradients().flat, exact.flat, name="gradients on the device")
