"""One core used well: Numba on one core, with loops that become vector instructions.

The functions of the contract are those of `image_rows` and `dense`. Training goes further: it takes
sixteen images at a time through the functions of `batch_innermost`, forward and backward, before
the next sixteen, so that their activations never leave the cache.
"""

import functools
import threading
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels import batch_innermost as lanes
from cnnlab.kernels.dense import (
    cross_entropy,
    dense_backward_bias,
    dense_backward_input,
    dense_backward_weights,
    dense_forward,
    sigmoid,
    sigmoid_backward,
)
from cnnlab.kernels.image_rows import (  # noqa: F401  the contract
    conv_backward_bias,
    conv_backward_input,
    conv_backward_weights,
    conv_forward,
    pool_backward_bias,
    pool_backward_input,
    pool_backward_weights,
    pool_forward,
)


def loss_and_gradients(params, x, labels, grads):
    """Loss of a batch x (N,C,H,W) with labels (N) and its gradients, summed over the batch.

    `params` and `grads` hold (conv_w, conv_b, pool_w, pool_b, dense_w, dense_b). A few images go
    through the contract's functions; more of them go sixteen at a time, side by side.
    """
    if len(x) < 8:
        return few_images(*params, x, labels, *grads)
    shapes = tuple(array.shape for array in (x[0], *params))
    return many_images(*params, x, labels, *grads, buffers(threading.get_ident(), 1, *shapes), 0)


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

    The first index is the worker; for the other dimensions see `batch_innermost`.
    """

    mixed: np.ndarray
    image: np.ndarray
    z1: np.ndarray
    y1: np.ndarray
    rows: np.ndarray
    d_rows: np.ndarray
    window: np.ndarray
    hidden: np.ndarray
    d_hidden: np.ndarray
    d1: np.ndarray
    z2: np.ndarray
    y2: np.ndarray
    d2: np.ndarray
    z3: np.ndarray
    y3: np.ndarray


@functools.lru_cache(maxsize=8)
def buffers(thread, n, x, cw, cb, pw, pb, dw, db):
    """Buffers of n workers, for images and parameters of these shapes, the same at every call.

    Each calling thread has its own.

    Memory fresh from the operating system would cost a page fault for every 4 KiB, in every step.
    """
    (C, H, W), (F, _, K, _), S, (O, D), B = x, cw, pw[1], dw, lanes.LANES
    P, Q = H - K + 1, W - K + 1
    M = Q // S * S * B
    return Buffers(
        mixed=lanes.zeros(n, 4, C * H * W * 4),
        image=lanes.zeros(n, C, H, W * B),
        z1=lanes.zeros(n, P, Q * B),
        y1=lanes.zeros(n, F, P, Q * B),
        rows=lanes.zeros(n, F, S, M),
        d_rows=lanes.zeros(n, F, S, M),
        window=lanes.zeros(n, M + S * B),
        hidden=lanes.zeros(n, F, P // S, M),
        d_hidden=lanes.zeros(n, F, P // S, M),
        d1=lanes.zeros(n, 2, P, W * B),
        z2=lanes.zeros(n, B, D),
        y2=lanes.zeros(n, B, D),
        d2=lanes.zeros(n, B, D),
        z3=lanes.zeros(n, B, O),
        y3=lanes.zeros(n, B, O),
    )


@numba.njit
def many_images(cw, cb, pw, pb, dw, db, x, labels, d_cw, d_cb, d_pw, d_pb, d_dw, d_db, own, worker):
    """Loss and gradients sixteen images at a time, side by side in the lanes of the vectors.

    In the fully connected layer, between `from_lanes` and `to_lanes`, an image is a row again.
    """
    N, (C, H, W), (F, _, K, _), S, B = len(x), x.shape[1:], cw.shape, pw.shape[1], lanes.LANES
    P, Q, (_, D) = (H - K + 1) // S, (W - K + 1) // S, dw.shape  # P, Q: of the pooling
    image, mixed, z1, y1 = own.image[worker], own.mixed[worker], own.z1[worker], own.y1[worker]
    rows, d_rows, window = own.rows[worker], own.d_rows[worker], own.window[worker]
    hidden, d_hidden, d1 = own.hidden[worker], own.d_hidden[worker], own.d1[worker]
    z2, y2, d2 = own.z2[worker], own.y2[worker], own.d2[worker]
    z3, y3 = own.z3[worker], own.y3[worker]
    part_pb, part_dw, part_db = np.empty_like(pb), np.empty_like(dw), np.empty_like(db)
    d_cw[:], d_cb[:], d_pb[:] = np.float32(0), np.float32(0), np.float32(0)
    d_dw[:], d_db[:], d_rows[:] = np.float32(0), np.float32(0), np.float32(0)
    loss = 0.0
    lanes.pool_weights_to_rows(pw, rows)
    for first in range(0, N, B):
        block, label = x[first : first + B].reshape(-1, C * H * W), labels[first : first + B]
        n = label.size
        if n == B:
            lanes.interleave(block, mixed)
            lanes.interleave(mixed, image.reshape(1, C * H * W * B))
        else:
            lanes.to_lanes(block, image.reshape(C * H * W, B))
        for f in range(F):
            lanes.conv_map_forward(image, cw[f], cb[f], z1)
            sigmoid(z1, y1[f])
            lanes.pool_map_forward(y1[f], rows[f], pb[f], window, hidden[f])
        lanes.from_lanes(hidden.reshape(D, S * B), z2[:n])
        sigmoid(z2, y2)
        dense_forward(y2[:n], dw, db, z3[:n])
        sigmoid(z3, y3)
        loss += cross_entropy(y3[:n], label, z3[:n])
        dense_backward_weights(y2[:n], z3[:n], part_dw)
        dense_backward_bias(z3[:n], part_db)
        dense_backward_input(z3[:n], dw, d2[:n])
        sigmoid_backward(y2, d2, z2)
        pool_backward_bias(z2[:n].reshape(n, F, P, Q), part_pb)
        d_dw += part_dw
        d_db += part_db
        d_pb += part_pb
        lanes.to_lanes(z2[:n], d_hidden.reshape(D, S * B))
        for f in range(0, F, 2):
            for g in range(f, min(f + 2, F)):
                lanes.pool_map_backward(y1[g], rows[g], d_hidden[g], window, d_rows[g], d1[g - f])
            lanes.conv_maps_backward(image, d1, d_cw[f : f + 2], d_cb[f : f + 2])
    lanes.pool_weights_from_rows(d_rows, d_pw)
    return loss
