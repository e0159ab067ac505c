"""Training on the device: images, labels, parameters and gradients stay there."""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from cnnlab import cuda
from cnnlab.network import Parameters

Call = Callable[[], None]


class OnDevice:
    """Forward, backward and update for one batch after another, as prepared launches.

    Parameters
    ----------
    params : Parameters, float32; a copy goes to the device, see `parameters`
    images, labels : the training set, float32 (n,C,H,W) and integers (n), copied to the device
    batch : images per step; the first image follows the last, see `start`
    rate : the learning rate, for the mean gradient of a batch

    A subclass makes `stages`: the launches of a step in order; those of one stage are independent.
    Raises ValueError if the set is smaller than a batch.
    """

    def __init__(self, params: Parameters, images, labels, *, batch=256, rate=0.4):
        if not 1 <= batch <= len(images):
            raise ValueError(f"batch: expected 1 to {len(images)} images, got {batch}")
        self._xp = xp = cuda.array_module()
        self._params, self.network = params, params.network
        self.batch, self.rate, self.steps_an_epoch = batch, rate, len(images) // batch
        self._flat, self._grads = xp.asarray(params.flat.copy()), xp.zeros_like(params.flat)
        self._images = xp.ascontiguousarray(xp.asarray(images))
        self._labels = xp.asarray(labels).astype(np.int32)
        self._order = xp.arange(len(images), dtype=np.int32)
        self._position = xp.asarray([0, len(images)], np.int32)  # in the order, and its length
        self.stages = self._stages()

    def _stages(self) -> list[list[Call]]:
        raise NotImplementedError

    def __call__(self) -> None:
        """Make all launches of a step in order; on a GPU, without waiting for them."""
        for stage in self.stages:
            for call in stage:
                call()

    @property
    def n_launches(self) -> int:
        """The number of launches of a step."""
        return sum(map(len, self.stages))

    def start(self, order) -> None:
        """Begin with the first batch of the images numbered in `order`, which wraps around.

        Raises ValueError for anything but up to n numbers of images.
        """
        order, n = np.asarray(order), len(self._order)
        whole = order.dtype.kind in "iu" and order.ndim == 1 and 1 <= len(order) <= n
        if not whole or order.min() < 0 or order.max() >= n:
            got = np.array2string(order, threshold=8)  # a long order in a few numbers
            raise ValueError(f"order: expected 1 to {n} numbers of images 0..{n - 1}, got {got}")
        self._order[: len(order)] = self._xp.asarray(order.astype(np.int32))
        self._position[...] = self._xp.asarray([0, len(order)], np.int32)

    def again(self) -> None:
        """Begin with the first batch of the same order."""
        self._position[:1] = 0

    def graph(self, n_steps: int = 1) -> Call:
        """One call that makes all launches of the next `n_steps` steps: on a GPU, a CUDA graph."""
        with self.undone():  # capturing may make the steps
            return cuda.graph(self.stages * n_steps)

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """Go back to where training was before the `with` block."""
        kept = [array.copy() for array in self._state()]
        yield
        for array, value in zip(self._state(), kept, strict=True):
            array[...] = value

    def _state(self) -> list:
        """The arrays that steps change and build on."""
        return [self._flat, self._position]

    def parameters(self) -> Parameters:
        """The current parameters, copied from the device."""
        return self._from_device(self._flat)

    def gradients(self) -> Parameters:
        """The gradients of the last batch, summed over its images."""
        return self._from_device(self._grads)

    def _from_device(self, flat) -> Parameters:
        params = self._params.copy()
        params.flat[:] = flat if isinstance(flat, np.ndarray) else flat.get()
        return params
