"""Loss and gradients of sixteen images at a time, side by side in the lanes of vectors.

A block of sixteen goes forward and backward before the next, so that its activations stay in the
cache. For the loss and the weights of the fully connected layer an image is a row again: arrays
whose names end in `_rows` are (16, …).
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels.vector import lanes
from cnnlab.kernels.vector.activation import cross_entropy
from cnnlab.kernels.vector.dense import dense_backward_bias, dense_backward_weights


class Scratch(NamedTuple):
    """Memory of one worker for a block of images; the last index is the lane.

    Of the layers 1 (convolution), 2 (pooling) and 3 (fully connected), z are preactivations, y
    activations and d gradients with respect to z. `pool_w`, `dense_w` and `dense_b` are gradients
    of a block.
    """

    dealt: np.ndarray
    x: np.ndarray
    z1: np.ndarray
    y1: np.ndarray
    d1: np.ndarray
    z2: np.ndarray
    y2: np.ndarray
    d2: np.ndarray
    z3: np.ndarray
    y3: np.ndarray
    d3: np.ndarray
    y2_rows: np.ndarray
    y3_rows: np.ndarray
    d3_rows: np.ndarray
    pool_w: np.ndarray
    dense_w: np.ndarray
    dense_b: np.ndarray


@functools.lru_cache(maxsize=8)
def scratch_memory(caller, workers, image_shape, weight_shapes):
    """Scratch memory for images and parameters of these shapes, the same at every call.

    `workers` is empty or a tuple with their number, then the first index of each array. Each
    calling thread has its own. Memory fresh from the operating system would cost a page fault for
    every 4 KiB, in every step.
    """
    (C, H, W), ((F, _, K, _), _, (_, S, _), _, (O, D), _) = image_shape, weight_shapes
    P, Q, B = H - K + 1, W - K + 1, lanes.LANES
    shapes = Scratch(
        dealt=(4, C * H * W * 4),
        x=(C, H, W, B),
        z1=(P, Q, B),
        y1=(F, P, Q, B),
        d1=(3, P, Q, B),
        z2=(F, P // S, Q // S, B),
        y2=(D, B),
        d2=(F, P // S, Q // S, B),
        z3=(O, B),
        y3=(O, B),
        d3=(O, B),
        y2_rows=(B, D),
        y3_rows=(B, O),
        d3_rows=(B, O),
        pool_w=(F, S, S, B),
        dense_w=(O, D),
        dense_b=(O,),
    )
    return Scratch(*(lanes.zeros(*workers, *shape) for shape in shapes))


@numba.njit
def of_worker(scratch, worker):
    """The scratch memory of one of several workers."""
    s = scratch
    return Scratch(
        s.dealt[worker], s.x[worker], s.z1[worker], s.y1[worker], s.d1[worker], s.z2[worker],
        s.y2[worker], s.d2[worker], s.z3[worker], s.y3[worker], s.d3[worker], s.y2_rows[worker],
        s.y3_rows[worker], s.d3_rows[worker], s.pool_w[worker], s.dense_w[worker],
        s.dense_b[worker],
    )  # fmt: skip


@numba.njit
def many_images(weights, grads, images, labels, chosen, scratch):
    """Loss of the images number `chosen` (N), and their gradients, both summed over the images."""
    clear(grads)
    scratch.pool_w[:] = np.float32(0)
    loss = 0.0
    for first in range(0, chosen.size, lanes.LANES):
        block = chosen[first : first + lanes.LANES]
        load_images(images, block, scratch)
        forward(weights, scratch)
        loss += loss_and_dense_gradients(labels[block], grads, scratch)
        backward(weights, grads, scratch)
    lanes.add_lanes(scratch.pool_w, grads.pool_w.reshape(-1))
    return loss


@numba.njit(inline="always")
def clear(grads):
    """Set all gradients to zero."""
    zero = np.float32(0)
    grads.conv_w[:], grads.conv_b[:], grads.pool_w[:] = zero, zero, zero
    grads.pool_b[:], grads.dense_w[:], grads.dense_b[:] = zero, zero, zero


@numba.njit(inline="always")
def load_images(images, block, scratch):
    """Lay the images number `block`, at most sixteen, side by side; lanes left over are zero."""
    M, C, H, W = images.shape
    pixels, x = images.reshape(M, C * H * W), scratch.x
    if block.size == lanes.LANES:
        lanes.interleave(pixels, block, scratch.dealt)
        lanes.interleave(scratch.dealt, np.arange(4), x.reshape(1, x.size))
    else:
        lanes.to_lanes(pixels[block], x.reshape(C * H * W, lanes.LANES))


@numba.njit(inline="always")
def forward(weights, scratch):
    """From the images to the activations of every layer."""
    z1, y1, z2 = scratch.z1, scratch.y1, scratch.z2
    pixels = len(z1) * z1.shape[1], lanes.LANES
    for f in range(len(y1)):
        lanes.conv_map_forward(scratch.x, weights.conv_w[f], weights.conv_b[f], z1)
        lanes.sigmoid_lanes(z1.reshape(pixels), y1[f].reshape(pixels))
        lanes.pool_map_forward(y1[f], weights.pool_w[f], weights.pool_b[f], z2[f])
    lanes.sigmoid_lanes(z2.reshape(scratch.y2.shape), scratch.y2)
    lanes.dense_lanes_forward(scratch.y2, weights.dense_w, weights.dense_b, scratch.z3)
    lanes.sigmoid_lanes(scratch.z3, scratch.y3)


@numba.njit(inline="always")
def loss_and_dense_gradients(labels, grads, scratch):
    """Loss of the block; its gradients with respect to the last preactivation and dense layer."""
    n, dense_w, dense_b = len(labels), grads.dense_w, grads.dense_b
    y2, y3, d3 = scratch.y2_rows[:n], scratch.y3_rows[:n], scratch.d3_rows[:n]
    lanes.from_lanes(scratch.y3, y3)
    loss = cross_entropy(y3, labels, d3)
    lanes.from_lanes(scratch.y2, y2)
    dense_backward_weights(y2, d3, scratch.dense_w)
    dense_backward_bias(d3, scratch.dense_b)
    dense_w += scratch.dense_w
    dense_b += scratch.dense_b
    lanes.to_lanes(d3, scratch.d3)
    return loss


@numba.njit(inline="always")
def backward(weights, grads, scratch):
    """Gradients of pooling and convolution, from that with respect to the last preactivation."""
    y1, d1, d2 = scratch.y1, scratch.d1, scratch.d2
    lanes.dense_lanes_backward(
        scratch.d3, weights.dense_w, scratch.y2, d2.reshape(scratch.y2.shape)
    )
    for first in range(0, len(y1), 3):  # three maps share what they read of the images
        for f in range(first, min(first + 3, len(y1))):
            sums = lanes.pool_map_backward(
                y1[f], weights.pool_w[f], d2[f], scratch.pool_w[f], d1[f - first]
            )
            grads.pool_b[f] += sums[0]
            grads.conv_b[f] += sums[1]
        lanes.conv_maps_backward(scratch.x, d1, grads.conv_w[first : first + 3])
