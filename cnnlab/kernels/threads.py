"""Several cores: Numba's `prange` is the parallel for, on as many threads as `cnnlab.pool` says.

The functions of the contract are those of `collapsed` and `collapsed_dense`. Training takes a block
of the batch a thread, through `vector`: starting threads once a step, not once a layer.
"""

import functools
import threading

import numba
import numpy as np

from cnnlab.kernels import batch_innermost as lanes
from cnnlab.kernels import vector
from cnnlab.kernels.collapsed import (  # noqa: F401  the contract
    conv_backward_bias,
    conv_backward_input,
    conv_backward_weights,
    conv_forward,
    pool_backward_bias,
    pool_backward_input,
    pool_backward_weights,
    pool_forward,
)
from cnnlab.kernels.collapsed_dense import (  # noqa: F401
    cross_entropy,
    dense_backward_bias,
    dense_backward_input,
    dense_backward_weights,
    dense_forward,
    sigmoid,
    sigmoid_backward,
)


def loss_and_gradients(params, x, labels, grads):
    """Loss of a batch x (N,C,H,W) with labels (N) and its gradients, summed over the batch.

    Each thread takes a block of the batch through `vector` into gradients of its own; the blocks
    are added up in their order, so the same number of threads gives the same bits.
    """
    n_threads, caller = numba.get_num_threads(), threading.get_ident()
    own = vector.buffers(caller, n_threads, *(array.shape for array in (x[0], *params)))
    private = private_gradients(caller, n_threads, sum(array.size for array in grads))
    return blocks_of_the_batch(*params, x, labels, *grads, own, private)


def take(images, chosen):
    """A batch: the images (M,C,H,W) with the numbers chosen (N), in memory of its own."""
    x = np.empty((len(chosen), *images.shape[1:]), images.dtype)
    take_blocks(images, chosen, x, numba.get_num_threads())
    return x


@numba.njit(parallel=True)
def take_blocks(images, chosen, x, n_threads):
    """Copy the images chosen (N) of images (M,C,H,W) to x (N,C,H,W), each by who will need it."""
    N = len(chosen)
    unit = 16 if N >= 16 * n_threads else 1
    units = (N + unit - 1) // unit
    source, rows = images.reshape(len(images), -1), x.reshape(N, -1)
    for t in numba.prange(n_threads):
        for n in range(units * t // n_threads * unit, min(N, units * (t + 1) // n_threads * unit)):
            for i in range(rows.shape[1]):
                rows[n, i] = source[chosen[n], i]


@functools.lru_cache(maxsize=8)
def private_gradients(caller, n_threads, size):
    """A row of gradients for each thread, cache lines apart: two threads never write to one."""
    return lanes.zeros(n_threads, -(-size // lanes.LANES) * lanes.LANES + lanes.LANES)


@numba.njit(parallel=True)
def blocks_of_the_batch(
    cw, cb, pw, pb, dw, db, x, labels, d_cw, d_cb, d_pw, d_pb, d_dw, d_db, own, private
):
    """Loss and gradients, a block of the batch a thread: whole sixteens where there are enough."""
    N, T = len(x), len(private)
    unit = 16 if N >= 16 * T else 1
    units = (N + unit - 1) // unit
    a, b, c = cw.size, cw.size + cb.size, cw.size + cb.size + pw.size
    d, e = c + pb.size, c + pb.size + dw.size
    losses = np.empty((T, 8))  # a cache line for each, too
    for t in numba.prange(T):
        first, last = units * t // T * unit, min(N, units * (t + 1) // T * unit)
        g, mine, labels_mine = private[t], x[first:last], labels[first:last]
        d1, d2, d3 = g[:a].reshape(cw.shape), g[a:b], g[b:c].reshape(pw.shape)
        d4, d5, d6 = g[c:d], g[d:e].reshape(dw.shape), g[e : e + db.size]
        losses[t, 0] = 0
        if first == last:
            g[:] = np.float32(0)
        else:
            losses[t, 0] = vector.many_images(
                cw, cb, pw, pb, dw, db, mine, labels_mine, d1, d2, d3, d4, d5, d6, own, t
            )
    combine(private, d_cw, d_cb, d_pw, d_pb, d_dw, d_db)
    return add_up(losses)


@numba.njit
def combine(private, d_cw, d_cb, d_pw, d_pb, d_dw, d_db):
    """Add up the threads' gradients (T,M) in their order, and hand them out."""
    total, first = private[0], 0
    for t in range(1, len(private)):
        total += private[t]
    for out in (d_cw.reshape(-1), d_cb, d_pw.reshape(-1), d_pb, d_dw.reshape(-1), d_db):
        out[:] = total[first : first + out.size]
        first += out.size


@numba.njit
def add_up(losses):
    """The sum of the threads' losses, the first column of (T,8), in their order."""
    total = 0.0
    for t in range(len(losses)):
        total += losses[t, 0]
    return total
