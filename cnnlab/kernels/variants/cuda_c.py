"""Several kernels in CUDA C for one operation, each with one new idea, and their launches.

The functions have the signatures of the contract, so they can be checked and timed like any other.
"""

from cnnlab.cuda import load
from cnnlab.kernels import device

SIDE = 8  # threads along each side of a square block


def conv_forward_tiled(x, w, b, z, stride=1):
    """A block for each 8 × 8 tile of outputs; its inputs, with their halo, in shared memory."""
    n, _, p, q = z.shape
    edge = (SIDE - 1) * stride + w.shape[2]
    grid, shared = (-(-q // SIDE), -(-p // SIDE), n), 4 * x.shape[1] * edge * edge
    given = x, w, b, z, *x.shape, len(w), w.shape[2], stride
    load("tiled").launch("conv_forward_tiled", grid, (SIDE, SIDE), *given, shared=shared)


def conv_forward_four_filters(x, w, b, z, stride=1):
    """A thread for each position and four filters: each pixel it loads serves four outputs."""
    n, f, p, q = z.shape
    sizes = *x.shape, len(w), w.shape[2], stride
    load("tiled").over("conv_forward_four_filters", n * -(-f // 4) * p * q, x, w, b, z, *sizes)


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


def bias_serial(dz, db):
    """A block for each filter; every thread computes the whole sum, and one of them stores it."""
    _bias("bias_serial", dz, db, 0)


def bias_shared(dz, db):
    """A block for each filter; each thread has a partial sum, and the first adds them up."""
    _bias("bias_shared", dz, db, 4 * 256)


def bias_tree(dz, db):
    """A block for each filter; each thread has a partial sum, and a tree adds them up."""
    _bias("bias_tree", dz, db, 4 * 256)


def _bias(kernel, dz, db, shared):
    """Launch a block of 256 threads for each filter, with `shared` bytes of shared memory."""
    sizes = *dz.shape[:2], dz[0, 0].size
    load("bias").launch(kernel, (len(db),), (256,), dz, db, *sizes, shared=shared)


def dense_forward_tiled(x, w, b, z):
    """A block for each 16 × 16 tile of z: a matrix product of tiles of x and w in shared memory."""
    (n, o), d = z.shape, x.shape[1]
    grid = -(-o // 16), -(-n // 16)
    load("dense").launch("dense_forward_tiled", grid, (16, 16), x, w, b, z, n, d, o)


# The kernels of each operation in the order of the lessons; those of `device` are among them.
LADDER = {
    "conv_forward": {
        "a thread per output": device.conv_forward,
        "tiled": conv_forward_tiled,
        "four filters a thread": conv_forward_four_filters,
    },
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
    "conv_backward_bias": {
        "serial": bias_serial,
        "shared memory": bias_shared,
        "tree": bias_tree,
        "shuffles": device.conv_backward_bias,
    },
    "dense_forward": {"a block per output": device.dense_forward, "tiled": dense_forward_tiled},
}
