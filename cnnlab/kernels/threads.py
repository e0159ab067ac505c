"""Several cores: Numba's `prange` is the parallel for, on as many threads as `cnnlab.pool` says.

The functions of the contract are those of `collapsed` and `collapsed_dense`. Training takes a block
of the batch a thread, through `vector`: starting threads once a step, not once a layer.
"""

import functools
import threading

import numba
import numpy as np

from cnnlab.kernels import batch_innermost as lanes
from cnnlab.kernels import messages, vector
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

# Threads use every second buffer: a processor reads ahead, beyond the end of an array, and would
# take from the other core what lies there.
APART = 2


def loss_and_gradients(params, x, labels, grads, chosen=None):
    """Loss of a batch x (N,C,H,W) with labels (N) and its gradients, as that of `vector`.

    Each thread takes a block of the batch through `vector` into gradients of its own; the blocks
    are added up in their order, so the same number of threads gives the same bits.
    """
    own, private = places(params, x)
    chosen = np.arange(len(x)) if chosen is None else chosen
    total, last = np.empty(sum(array.size for array in grads), np.float32), 0
    loss = blocks_of_the_batch(*params, x, labels, chosen, total, own, private)
    for out in grads:
        first, last = last, last + out.size
        out[...] = total[first:last].reshape(out.shape)
    return loss


def sgd_steps(params, grads, images, labels, order, batch, rate, ranks=None):
    """As that of `vector`, with the threads sharing each batch."""
    batches = images, labels, order, batch, rate
    return sgd_loop(params.flat, grads.flat, *params, *batches, *places(params, images), ranks)


def places(params, images):
    """Buffers and gradients of their own for as many threads as Numba runs on."""
    n_threads, caller = numba.get_num_threads(), threading.get_ident()
    shapes = [array.shape for array in (images[0], *params)]
    own = vector.buffers(caller, APART * n_threads, *shapes)
    return own, private_gradients(caller, n_threads, sum(array.size for array in params))


@functools.lru_cache(maxsize=8)
def private_gradients(caller, n_threads, size):
    """A row of gradients for each thread, cache lines apart: two threads never write to one."""
    return lanes.zeros(n_threads, -(-size // lanes.LANES) * lanes.LANES + lanes.LANES)


@numba.njit(nogil=True)
def sgd_loop(
    flat, step, cw, cb, pw, pb, dw, db, images, labels, order, batch, rate, own, private, ranks
):  # fmt: skip
    """Steps of stochastic gradient descent on the parameters, which are views of `flat`."""
    loss = 0.0
    for first in range(0, order.size, batch):
        chosen = order[first : first + batch]
        for part in range(messages.parts(ranks)):
            mine = messages.share(chosen, ranks, part)
            loss += blocks_of_the_batch(
                cw, cb, pw, pb, dw, db, images, labels, mine, step, own, private
            )
            messages.send(step, ranks, part)
        messages.receive(step, ranks)
        step *= np.float32(rate / chosen.size)
        flat -= step
    return loss


@numba.njit(parallel=True)
def blocks_of_the_batch(cw, cb, pw, pb, dw, db, images, labels, chosen, total, own, private):
    """Loss and gradients, a block of the batch a thread: whole sixteens where there are enough.

    The gradients come one after the other in `total`, as the parameters are here.
    """
    N, T = len(chosen), len(private)
    unit = 16 if N >= 16 * T else 1
    units = (N + unit - 1) // unit
    a, b, c = cw.size, cw.size + cb.size, cw.size + cb.size + pw.size
    d, e = c + pb.size, c + pb.size + dw.size
    losses = np.empty((T, 8))  # a cache line for each, too
    for t in numba.prange(T):
        first, last = units * t // T * unit, min(N, units * (t + 1) // T * unit)
        g, mine = private[t], chosen[first:last]
        d1, d2, d3 = g[:a].reshape(cw.shape), g[a:b], g[b:c].reshape(pw.shape)
        d4, d5, d6 = g[c:d], g[d:e].reshape(dw.shape), g[e : e + db.size]
        worker = np.int64(t) * APART  # prange counts without a sign: Numba would compile all anew
        losses[t, 0] = 0
        if first == last:
            g[:] = np.float32(0)
        else:
            losses[t, 0] = vector.many_images(
                cw, cb, pw, pb, dw, db, images, labels, mine, d1, d2, d3, d4, d5, d6, own, worker
            )
    add_up(private, total)
    loss = 0.0
    for t in range(T):
        loss += losses[t, 0]
    return loss


@numba.njit
def add_up(private, total):
    """Add up the threads' gradients (T,M), in their order, for the first so many as `total` has."""
    for i in range(total.size):
        total[i] = private[0, i]
    for t in range(1, len(private)):
        for i in range(total.size):
            total[i] += private[t, i]
