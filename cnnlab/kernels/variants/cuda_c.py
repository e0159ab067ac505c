"""Several kernels in CUDA C for one operation, each with one new idea, and their launches.

The functions have the signatures of the contract, so they can be checked and timed like any other.
"""

from cnnlab.cuda import load
from cnnlab.kernels import device


def conv_backward_input_scatter(dz, w, dx, stride=1):
    """A thread for each element of dz; it adds atomically to all inputs of its window."""
    dx[...] = 0
    sizes = *dx.shape, len(w), w.shape[2], stride
    load("stationarity").over("conv_backward_input_scatter", dz.size, dz, w, dx, *sizes)


def conv_backward_input_by_weight(dz, w, dx, stride=1):
    """A block for each weight; it passes over all positions and adds atomically."""
    dx[...] = 0
    given = dz, w, dx, *dx.shape, len(w), w.shape[2], stride
    load("stationarity").launch("conv_backward_input_by_weight", (w.size,), (256,), *given)


def conv_backward_weights_scatter(x, dz, dw, stride=1):
    """A thread for each element of dz; it adds atomically to all weights of its filter."""
    dw[...] = 0
    sizes = *x.shape, len(dw), dw.shape[2], stride
    load("stationarity").over("conv_backward_weights_scatter", dz.size, x, dz, dw, *sizes)


def conv_backward_weights_two_stages(x, dz, dw, stride=1):
    """A thread for each image and weight, then a thread for each weight: no atomics."""
    n, size = len(x), dw.size
    parts = type(dw)((n, size), dw.dtype)  # NumPy's or CuPy's array, as dw is
    sizes = *x.shape, len(dw), dw.shape[2], stride
    load("stationarity").over("conv_backward_weights_parts", parts.size, x, dz, parts, *sizes)
    load("stationarity").over("add_parts", size, parts, dw, n, size)


# The kernels of each operation in the order of the lessons; those of `device` are among them.
LADDER = {
    "conv_backward_input": {
        "gather": device.conv_backward_input,
        "scatter": conv_backward_input_scatter,
        "by weight": conv_backward_input_by_weight,
    },
    "conv_backward_weights": {
        "a block per weight": device.conv_backward_weights,
        "scatter": conv_backward_weights_scatter,
        "two stages": conv_backward_weights_two_stages,
    },
}
