"""CUDA C: the kernels in `cnnlab/cuda/*.cu`, on an NVIDIA GPU or on the emulator.

This module holds the arithmetic of grids and blocks: how many threads each kernel is launched with.
"""

import math
import threading
from collections.abc import Callable

import numpy as np

from cnnlab import cuda
from cnnlab.cuda import load, step
from cnnlab.kernels.contract import CONTRACT, STRIDES
from cnnlab.network import REPORT_FORM
from cnnlab.runtime.arguments import at_least

FUSES, ALONE = REPORT_FORM, True


class DeviceTraining(threading.local):
    """What a thread's training has left on the device for its next steps."""

    training: tuple | None = None


HELD = DeviceTraining()


def fits(network) -> bool:
    """Whether `sgd_steps` has room for a network of the form that it fuses."""
    return step.misfit(network) is None


def sgd_steps(params, grads, images, labels, order, batch, rate):
    """Train on the images (M,C,H,W) number `order`, a batch at a time; returns the summed loss.

    Two launches for each step. The images stay on the device from one call to the next; the last
    step is left in `grads`. Raises ValueError for a batch of no images.
    """
    at_least("batch", batch, 1)
    network, batch = params.network, min(batch, len(images))
    held = HELD.training
    same = held and held[0] is images and held[1] is labels and held[2:4] == (network, batch)
    if not same:
        made = step.FusedStep(params, images, labels, batch=batch, rate=rate)
        held = HELD.training = images, labels, network, batch, made
    loss = held[-1].train(params, order, rate)
    grads.flat[:] = held[-1].gradients().flat * (rate / (len(order) % batch or batch))
    return loss


def hardware() -> str:
    """One line about what the kernels run on."""
    return cuda.gpu()[1]


def on_device(array: np.ndarray):
    """The array in the device's memory: CuPy's on a GPU, else as it is."""
    return cuda.array_module().asarray(array)


def resident_steps(params, images, labels, batch, rate):
    """Ways to train with all data on the device, see `cuda.step.rungs`."""
    return step.rungs(params, images.astype(np.float32, copy=False), labels, batch=batch, rate=rate)


def launched(operation: str, source: str, sizes: str, threads: int = 0) -> Callable:
    """The operation as a launch of the kernel of that name in a source of `cnnlab.cuda`.

    After its arrays it takes the sizes that the contract gives these letters; S is the stride. Each
    result has a block of so many threads; with 0 it has one thread, in a block of 256.
    """
    shapes, usual = CONTRACT[operation].values(), STRIDES.get(operation)

    def launch(*arguments, stride=usual):
        arrays, given = arguments[: len(shapes)], arguments[len(shapes) :]
        known, out = {"S": given[0] if given else stride}, arrays[-1]
        for letters, array in zip(shapes, arrays, strict=True):
            known |= zip(letters, array.shape, strict=True)
        arguments = *arrays, *(known[letter] for letter in sizes)
        if threads:
            load(source).launch(operation, (out.size,), (threads,), *arguments)
        else:
            load(source).over(operation, out.size, *arguments)

    launch.__name__ = operation
    return launch


def elementwise(operation: str) -> Callable:
    """The operation with a thread for each element: arrays of any shape, the output last."""

    def launch(*arrays):
        size = arrays[-1].size
        load("elementwise").over(operation, size, *arrays, size)

    launch.__name__ = operation
    return launch


conv_forward = launched("conv_forward", "conv", "NCHWFKS")
conv_backward_input = launched("conv_backward_input", "conv", "NCHWFKS")
conv_backward_weights = launched("conv_backward_weights", "conv", "NCHWFKS", 256)
pool_forward = launched("pool_forward", "pool", "NCHWKS")
pool_backward_input = launched("pool_backward_input", "pool", "NCHWKS")
pool_backward_weights = launched("pool_backward_weights", "pool", "NCHWKS", 256)
max_pool_forward = launched("max_pool_forward", "pool", "NCHWS")
max_pool_backward = launched("max_pool_backward", "pool", "NCHWS")
dense_forward = launched("dense_forward", "dense", "NDO", 64)
dense_backward_input = launched("dense_backward_input", "dense", "NDO")
dense_backward_weights = launched("dense_backward_weights", "dense", "NDO")
sigmoid, sigmoid_backward = elementwise("sigmoid"), elementwise("sigmoid_backward")
relu, relu_backward = elementwise("relu"), elementwise("relu_backward")


def conv_backward_bias(dz, db):
    """A block for each filter, map or output: dz (N,F,…) → db (F)."""
    sizes = *dz.shape[:2], math.prod(dz.shape[2:])
    load("conv").launch("conv_backward_bias", (len(db),), (256,), dz, db, *sizes)


pool_backward_bias = dense_backward_bias = conv_backward_bias


def cross_entropy(y, labels, dz):
    """A thread for each image: y (N,O), labels (N) → dz (N,O); returns the loss of all."""
    losses = np.empty(len(y), np.float32)  # comes back with the launch, where there is a GPU
    arguments = y, labels.astype(np.int32), dz, losses
    load("elementwise").over("cross_entropy", len(y), *arguments, *y.shape)
    return float(losses.sum(dtype=np.float64))
