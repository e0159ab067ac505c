"""CUDA C: the kernels in `cnnlab/cuda/*.cu`, on an NVIDIA GPU or on the emulator.

This module holds the arithmetic of grids and blocks: how many threads each kernel is launched with.
"""

import threading

import numpy as np

from cnnlab import cuda
from cnnlab.cuda import load, step
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


def conv_forward(x, w, b, z, stride=1):
    """A thread for each result: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    sizes = *x.shape, len(w), w.shape[2], stride
    load("conv").over("conv_forward", z.size, x, w, b, z, *sizes)


def conv_backward_input(dz, w, dx, stride=1):
    """A thread for each element of dx, which gathers: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    sizes = *dx.shape, len(w), w.shape[2], stride
    load("conv").over("conv_backward_input", dx.size, dz, w, dx, *sizes)


def conv_backward_weights(x, dz, dw, stride=1):
    """A block for each weight: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    sizes = *x.shape, len(dw), dw.shape[2], stride
    load("conv").launch("conv_backward_weights", (dw.size,), (256,), x, dz, dw, *sizes)


def conv_backward_bias(dz, db):
    """A block for each filter: dz (N,F,P,Q) → db (F)."""
    sizes = dz.shape[0], dz.shape[1], dz.shape[2] * dz.shape[3]
    load("conv").launch("conv_backward_bias", (len(db),), (256,), dz, db, *sizes)


def pool_forward(x, w, b, z, stride=4):
    """A thread for each result: x (N,C,H,W), w (C,K,K), b (C) → z (N,C,P,Q)."""
    load("pool").over("pool_forward", z.size, x, w, b, z, *x.shape, w.shape[1], stride)


def pool_backward_input(dz, w, dx, stride=4):
    """A thread for each element of dx: dz (N,C,P,Q), w (C,K,K) → dx (N,C,H,W)."""
    load("pool").over("pool_backward_input", dx.size, dz, w, dx, *dx.shape, w.shape[1], stride)


def pool_backward_weights(x, dz, dw, stride=4):
    """A block for each weight: x (N,C,H,W), dz (N,C,P,Q) → dw (C,K,K)."""
    sizes = *x.shape, dw.shape[1], stride
    load("pool").launch("pool_backward_weights", (dw.size,), (256,), x, dz, dw, *sizes)


def pool_backward_bias(dz, db):
    """A block for each map: dz (N,C,P,Q) → db (C)."""
    conv_backward_bias(dz, db)


def max_pool_forward(x, z, stride=4):
    """A thread for each result: x (N,C,H,W) → z (N,C,P,Q)."""
    load("pool").over("max_pool_forward", z.size, x, z, *x.shape, stride)


def max_pool_backward(x, dz, dx, stride=4):
    """A thread for each element of dx: x (N,C,H,W), dz (N,C,P,Q) → dx (N,C,H,W)."""
    load("pool").over("max_pool_backward", dx.size, x, dz, dx, *x.shape, stride)


def dense_forward(x, w, b, z):
    """A block of 64 threads for each result: x (N,D), w (O,D), b (O) → z (N,O)."""
    load("dense").launch("dense_forward", (z.size,), (64,), x, w, b, z, *x.shape, len(w))


def dense_backward_input(dz, w, dx):
    """A thread for each element of dx: dz (N,O), w (O,D) → dx (N,D)."""
    load("dense").over("dense_backward_input", dx.size, dz, w, dx, *dx.shape, len(w))


def dense_backward_weights(x, dz, dw):
    """A thread for each weight: x (N,D), dz (N,O) → dw (O,D)."""
    load("dense").over("dense_backward_weights", dw.size, x, dz, dw, *x.shape, len(dw))


def dense_backward_bias(dz, db):
    """A block for each output: dz (N,O) → db (O)."""
    load("conv").launch("conv_backward_bias", (len(db),), (256,), dz, db, *dz.shape, 1)


def sigmoid(z, y):
    """A thread for each element: z → y, of any shape."""
    load("elementwise").over("sigmoid", z.size, z, y, z.size)


def sigmoid_backward(y, dy, dz):
    """A thread for each element: y, dy → dz, of any shape."""
    load("elementwise").over("sigmoid_backward", y.size, y, dy, dz, y.size)


def relu(z, y):
    """A thread for each element: z → y, of any shape."""
    load("elementwise").over("relu", z.size, z, y, z.size)


def relu_backward(y, dy, dz):
    """A thread for each element: y, dy → dz, of any shape."""
    load("elementwise").over("relu_backward", y.size, y, dy, dz, y.size)


def cross_entropy(y, labels, dz):
    """A thread for each image: y (N,O), labels (N) → dz (N,O); returns the loss of all."""
    losses = np.empty(len(y), np.float32)  # comes back with the launch, where there is a GPU
    arguments = y, labels.astype(np.int32), dz, losses
    load("elementwise").over("cross_entropy", len(y), *arguments, *y.shape)
    return float(losses.sum(dtype=np.float64))
