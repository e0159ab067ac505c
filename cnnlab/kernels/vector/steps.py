"""Whole training steps on one core, for networks of the report's form.

Sixteen images at a time go through the functions of `lanes`, forward and backward, before the next
sixteen, so that their activations never leave the cache.
"""

import functools
import threading
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels.compiled import allreduce_memory, allreduce_mpi
from cnnlab.kernels.vector import lanes
from cnnlab.kernels.vector.activation import cross_entropy, sigmoid, sigmoid_backward
from cnnlab.kernels.vector.conv import conv_backward_bias, conv_backward_weights, conv_forward
from cnnlab.kernels.vector.dense import (
    dense_backward_bias,
    dense_backward_input,
    dense_backward_weights,
    dense_forward,
)
from cnnlab.kernels.vector.pool import (
    pool_backward_bias,
    pool_backward_input,
    pool_backward_weights,
    pool_forward,
)


def loss_and_gradients(params, x, labels, grads, chosen=None):
    """Loss of a batch x (N,C,H,W) with labels (N) and its gradients, summed over the batch.

    `params` and `grads` hold (conv_w, conv_b, pool_w, pool_b, dense_w, dense_b). With `chosen`, the
    batch is those of the images x and labels. A few images go through the contract's functions;
    more of them go sixteen at a time, side by side.
    """
    chosen = np.arange(len(x)) if chosen is None else chosen
    if len(chosen) < 8:
        return few_images(*params, x[chosen], labels[chosen], *grads)
    own = buffers(threading.get_ident(), 1, *(array.shape for array in (x[0], *params)))
    return many_images(*params, x, labels, chosen, *grads, own, 0)


def sgd_steps(params, grads, images, labels, order, batch, rate, ranks=None):
    """Train on the images (M,C,H,W) number `order`, a batch at a time; returns the summed loss.

    Many steps with no way back to Python between them: a step takes less than a millisecond, and
    Python would take a tenth of it. With `ranks`, of `messages` or of `teams`, each takes its share
    of a batch, and the loss is that of its shares.
    """
    own = buffers(threading.get_ident(), 1, *(array.shape for array in (images[0], *params)))
    arrays = (params.flat, grads.flat, *params, *grads, images, labels)
    n_ranks, team = 1 if ranks is None else ranks.size, None
    if isinstance(ranks, allreduce_memory.Team):
        team, ranks = ranks, None
    loss, whole = 0.0, order.size - order.size % batch
    for part in (order[:whole], order[whole:]):
        if part.size:
            share = min(batch, part.size) // n_ranks
            few = True if share < 8 else None
            loss += sgd_loop(*arrays, part, batch, rate, own, 0, few, team, ranks)
    return loss


@numba.njit(nogil=True)
def sgd_loop(
    flat, step, cw, cb, pw, pb, dw, db, d_cw, d_cb, d_pw, d_pb, d_dw, d_db,
    images, labels, order, batch, rate, own, worker, few, team, ranks,
):  # fmt: skip
    """Steps of stochastic gradient descent; the parameters are views of `flat`, the d of `step`.

    `few` is None or True, so that Numba compiles the one way that is needed and not the other.
    """
    loss = 0.0
    for first in range(0, order.size, batch):
        chosen = order[first : first + batch]
        for part in range(allreduce_mpi.parts(ranks)):
            mine = allreduce_mpi.share(allreduce_memory.share(chosen, team), ranks, part)
            if few is None:
                loss += many_images(
                    cw, cb, pw, pb, dw, db, images, labels, mine,
                    d_cw, d_cb, d_pw, d_pb, d_dw, d_db, own, worker,
                )  # fmt: skip
            elif mine.size:
                loss += few_images(
                    cw, cb, pw, pb, dw, db, images[mine], labels[mine],
                    d_cw, d_cb, d_pw, d_pb, d_dw, d_db,
                )  # fmt: skip
            else:
                step[:] = np.float32(0)
            total = allreduce_memory.allreduce(step, team)
            allreduce_mpi.send(total, ranks, part)
        allreduce_mpi.receive(total, ranks)
        scale = np.float32(rate / chosen.size)
        for i in range(total.size):  # `total *= scale` would not become vector instructions here,
            total[i] *= scale
        for i in range(total.size):  # and one loop for both neither
            flat[i] -= total[i]
    return loss


@numba.njit
def few_images(cw, cb, pw, pb, dw, db, x, labels, d_cw, d_cb, d_pw, d_pb, d_dw, d_db):
    """Loss and gradients by the contract's functions, with no way back to Python between them."""
    N, F, K, S = x.shape[0], cw.shape[0], cw.shape[2], pw.shape[1]
    conv = (N, F, x.shape[2] - K + 1, x.shape[3] - K + 1)
    pool = (N, F, conv[2] // S, conv[3] // S)
    y1, y2, y3 = (
        np.empty(conv, np.float32),
        np.empty(pool, np.float32),
        np.empty((N, db.size), np.float32),
    )
    z1, z2, z3 = np.empty_like(y1), np.empty_like(y2), np.empty_like(y3)
    d1, d2, flat = np.empty_like(y1), np.empty_like(y2), (N, dw.shape[1])

    conv_forward(x, cw, cb, z1)
    sigmoid(z1, y1)
    pool_forward(y1, pw, pb, z2, S)
    sigmoid(z2, y2)
    dense_forward(y2.reshape(flat), dw, db, z3)
    sigmoid(z3, y3)
    loss = cross_entropy(y3, labels, z3)  # from here on the z hold gradients at the preactivations
    dense_backward_weights(y2.reshape(flat), z3, d_dw)
    dense_backward_bias(z3, d_db)
    dense_backward_input(z3, dw, d2.reshape(flat))
    sigmoid_backward(y2, d2, z2)
    pool_backward_weights(y1, z2, d_pw, S)
    pool_backward_bias(z2, d_pb)
    pool_backward_input(z2, pw, d1, S)
    sigmoid_backward(y1, d1, z1)
    conv_backward_weights(x, z1, d_cw)
    conv_backward_bias(z1, d_cb)
    return loss


class Buffers(NamedTuple):
    """Where `many_images` keeps what sixteen images need, for several workers.

    The first index is the worker; for the other dimensions see `batch_innermost`. Of the fully
    connected layer, "rows" have an image a row, and the others a lane.
    """

    mixed: np.ndarray
    image: np.ndarray
    z1: np.ndarray
    y1: np.ndarray
    d1: np.ndarray
    z2: np.ndarray
    y2: np.ndarray
    y2_rows: np.ndarray
    y3: np.ndarray
    y3_rows: np.ndarray
    d3_rows: np.ndarray
    d_pool: np.ndarray


@functools.lru_cache(maxsize=8)
def buffers(thread, n, x, cw, cb, pw, pb, dw, db):
    """Buffers of n workers, for images and parameters of these shapes, the same at every call.

    Each calling thread has its own.

    Memory fresh from the operating system would cost a page fault for every 4 KiB, in every step.
    """
    (C, H, W), (F, _, K, _), S, (O, D), B = x, cw, pw[1], dw, lanes.LANES
    P, Q = H - K + 1, W - K + 1
    return Buffers(
        mixed=lanes.zeros(n, 4, C * H * W * 4),
        image=lanes.zeros(n, C, H, W, B),
        z1=lanes.zeros(n, P, Q, B),
        y1=lanes.zeros(n, F, P, Q, B),
        d1=lanes.zeros(n, 3, P, Q, B),
        z2=lanes.zeros(n, F, P // S, Q // S, B),
        y2=lanes.zeros(n, D, B),
        y2_rows=lanes.zeros(n, B, D),
        y3=lanes.zeros(n, O, B),
        y3_rows=lanes.zeros(n, B, O),
        d3_rows=lanes.zeros(n, B, O),
        d_pool=lanes.zeros(n, F, S, S, B),
    )


@numba.njit
def many_images(
    cw, cb, pw, pb, dw, db, images, labels, chosen,
    d_cw, d_cb, d_pw, d_pb, d_dw, d_db, own, worker,
):  # fmt: skip
    """Loss and gradients of the images chosen (N): sixteen at a time, in the lanes of the vectors.

    For the loss and the weights of the fully connected layer, an image is a row again.
    """
    N, (M, C, H, W), F, D, B = len(chosen), images.shape, len(cw), dw.shape[1], lanes.LANES
    pixels, deck = images.reshape(M, C * H * W), np.arange(4)
    mixed, image, d1 = own.mixed[worker], own.image[worker], own.d1[worker]
    z1, y1, z2 = own.z1[worker], own.y1[worker], own.z2[worker]
    y2, y2_rows = own.y2[worker], own.y2_rows[worker]
    y3, y3_rows, d3_rows = own.y3[worker], own.y3_rows[worker], own.d3_rows[worker]
    d_pool, part_dw, part_db = own.d_pool[worker], np.empty_like(dw), np.empty_like(db)
    d_cw[:], d_cb[:], d_pool[:] = np.float32(0), np.float32(0), np.float32(0)
    d_pb[:], d_dw[:], d_db[:] = np.float32(0), np.float32(0), np.float32(0)
    loss = 0.0
    for first in range(0, N, B):
        block = chosen[first : first + B]
        n = block.size
        if n == B:
            lanes.interleave(pixels, block, mixed)
            lanes.interleave(mixed, deck, image.reshape(1, C * H * W * B))
        else:
            lanes.to_lanes(pixels[block], image.reshape(C * H * W, B))
        for f in range(F):
            lanes.conv_map_forward(image, cw[f], cb[f], z1)
            lanes.sigmoid_lanes(z1.reshape(-1, B), y1[f].reshape(-1, B))
            lanes.pool_map_forward(y1[f], pw[f], pb[f], z2[f])
        lanes.sigmoid_lanes(z2.reshape(D, B), y2)
        lanes.dense_lanes_forward(y2, dw, db, y3)
        lanes.sigmoid_lanes(y3, y3)
        lanes.from_lanes(y3, y3_rows[:n])
        loss += cross_entropy(y3_rows[:n], labels[block], d3_rows[:n])
        lanes.from_lanes(y2, y2_rows[:n])
        dense_backward_weights(y2_rows[:n], d3_rows[:n], part_dw)
        dense_backward_bias(d3_rows[:n], part_db)
        d_dw += part_dw
        d_db += part_db
        lanes.to_lanes(d3_rows[:n], y3)  # from here on y3 and z2 hold gradients
        lanes.dense_lanes_backward(y3, dw, y2, z2)
        for f in range(0, F, 3):
            for g in range(f, min(f + 3, F)):
                sums = lanes.pool_map_backward(y1[g], pw[g], z2[g], d_pool[g], d1[g - f])
                d_pb[g] += sums[0]
                d_cb[g] += sums[1]
            lanes.conv_maps_backward(image, d1, d_cw[f : f + 3])
    lanes.add_lanes(d_pool, d_pw.reshape(-1))
    return loss
