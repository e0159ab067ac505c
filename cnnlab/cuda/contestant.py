"""Ways to train on the device, for `cnnlab.bench`: everything stays there."""

import numpy as np

from cnnlab import cuda, measure
from cnnlab.bench import exact_gradients
from cnnlab.cuda.step import Step
from cnnlab.network import Network
from cnnlab.training import RATE


class OnDevice:
    """One way to train: `steps()` makes `n_steps` training steps and waits for the last.

    On a GPU that is an epoch of the set, since waiting after each step would be half of its time.
    """

    n_threads = 1

    def __init__(self, data, batch: int, *, fused: bool = False, replayed: bool = False):
        self._images = data.train_images.astype(np.float32, copy=False)
        self._labels = data.train_labels
        params = Network().parameters(0)
        given = {"batch": batch, "rate": RATE, "fused": fused}
        self._step = Step(params, self._images, self._labels, **given)
        self._call = self._step.graph() if replayed else self._step
        self.batch, self._left = batch, self._step.steps_an_epoch
        self.n_steps = self._step.steps_an_epoch if cuda.gpu()[0] else 1

    def steps(self) -> None:
        """Train on the next batches, round and round through the set."""
        for _ in range(self.n_steps):
            if self._left == 0:
                self._begin()
            self._call()
            self._left -= 1
        cuda.wait()

    def _begin(self) -> None:
        self._step.start(range(len(self._labels)))
        self._left = self._step.steps_an_epoch

    def check(self) -> None:
        """Raise AssertionError unless the gradients of a batch are those of the reference."""
        self._begin()
        x, labels = self._images[: self.batch], self._labels[: self.batch]
        exact = exact_gradients(self._step.parameters(), x, labels)
        self._call()
        cuda.wait()
        self._begin()
        measure.same(self._step.gradients().flat, exact.flat, name="gradients on the device")


def contestants(data, batch: int) -> dict[str, OnDevice]:
    """A launch for each operation, fused launches, and those as one graph."""
    return {
        "device": OnDevice(data, batch),
        "device, fused": OnDevice(data, batch, fused=True),
        "device, graph": OnDevice(data, batch, fused=True, replayed=True),
    }
