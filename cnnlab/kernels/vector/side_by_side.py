"""Loss and gradients of LANES images at a time, side by side in the lanes of vectors.

A block of images goes forward and backward before the next, so that its activations stay in the
cache. For the loss and the weights of the fully connected layer an image is a row again: arrays
whose names end in `_rows` are (LANES, …).
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels.registers import LANES, MAPS
from cnnlab.kernels.vector import lanes
from cnnlab.kernels.vector.activation import cross_entropy


class Scratch(NamedTuple):
    """Memory of one worker for a block of images; the last index is the lane.

    Of the layers 1 (convolution), 2 (pooling) and 3 (fully connected), y are activations, at first
    preactivations, and d gradients with respect to the latter. `pool_w` has a sum for each lane.
    """

    dealt: np.ndarray
    x: np.ndarray
    y1: np.ndarray
    d1: np.ndarray
    y2: np.ndarray
    d2: np.ndarray
    y3: np.ndarray
    d3: np.ndarray
    y2_rows: np.ndarray
    y3_rows: np.ndarray
    d3_rows: np.ndarray
    pool_w: np.ndarray


@functools.lru_cache(maxsize=8)
def scratch_memory(caller, workers, image_shape, weight_shapes):
    """Scratch memory for images and parameters of these shapes, the same at every call.

    `workers` is empty or a tuple with their number, then the first index of each array. Each
    calling thread has its own. Memory fresh from the operating system would cost a page fault for
    every 4 KiB, in every step.
    """
    (C, H, W), ((F, _, K, _), _, (_, S, _), _, (O, D), _) = image_shape, weight_shapes
    P, Q, B = H - K + 1, W - K + 1, LANES
    shapes = Scratch(
        dealt=(4, C * H * W * 4),
        x=(C, H, W, B),
        y1=(F, P, Q, B),
        d1=(MAPS, P, Q, B),
        y2=(F, P // S, Q // S, B),
        d2=(F, P // S, Q // S, B),
        y3=(O, B),
        d3=(O, B),
        y2_rows=(B, D),
        y3_rows=(B, O),
        d3_rows=(B, O),
        pool_w=(F, S, S, B),
    )
    return Scratch(*(lanes.zeros(*workers, *shape) for shape in shapes))


@numba.njit
def of_worker(scratch, worker):
    """The scratch memory of one of several workers."""
    s = scratch
    return Scratch(
        s.dealt[worker], s.x[worker], s.y1[worker], s.d1[worker], s.y2[worker], s.d2[worker],
        s.y3[worker], s.d3[worker], s.y2_rows[worker], s.y3_rows[worker], s.d3_rows[worker],
        s.pool_w[worker],
    )  # fmt: skip


@numba.njit
def many_images(weights, grads, images, labels, chosen, scratch):
    """Loss of the images number `chosen` (N), and their gradients, both summed over the images."""
    clear(grads)
    scratch.pool_w[:] = np.float32(0)
    loss = 0.0
    for first in range(0, chosen.size, LANES):
        block = chosen[first : first + LANES]
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
    """Lay the images number `block`, at most LANES, side by side; lanes left over are zero."""
    M, C, H, W = images.shape
    pixels, x = images.reshape(M, C * H * W), scratch.x
    if LANES == 16 == block.size:
        lanes.interleave(pixels, block, scratch.dealt)
        lanes.interleave(scratch.dealt, np.arange(4), x.reshape(1, x.size))
    else:
        lanes.to_lanes(pixels, block, x.reshape(C * H * W, LANES))


@numba.njit(inline="always")
def forward(weights, scratch):
    """From the images to the activations of every layer."""
    y1, y2, y3 = scratch.y1, scratch.y2, scratch.y3
    for f in range(len(y1)):
        lanes.conv_map_forward(scratch.x, weights.conv_w[f], weights.conv_b[f], y1[f])
        lanes.sigmoid_lanes(y1[f].reshape(-1, LANES))
        lanes.pool_map_forward(y1[f], weights.pool_w[f], weights.pool_b[f], y2[f])
    lanes.sigmoid_lanes(y2.reshape(-1, LANES))
    lanes.dense_lanes_forward(y2.reshape(-1, LANES), weights.dense_w, weights.dense_b, y3)
    lanes.sigmoid_lanes(y3)


@numba.njit(inline="always")
def loss_and_dense_gradients(labels, grads, scratch):
    """Loss of the block; its gradients with respect to the last preactivation and dense layer."""
    n = len(labels)
    y2, y3, d3 = scratch.y2_rows[:n], scratch.y3_rows[:n], scratch.d3_rows[:n]
    lanes.from_lanes(scratch.y3, y3)
    loss = cross_entropy(y3, labels, d3)
    lanes.from_lanes(scratch.y2.reshape(-1, LANES), y2)
    lanes.add_dense_gradients(y2, d3, grads.dense_w, grads.dense_b)
    lanes.to_lanes(d3, np.arange(n), scratch.d3)
    return loss


@numba.njit(inline="always")
def backward(weights, grads, scratch):
    """Gradients of pooling and convolution, from that with respect to the last preactivation."""
    y1, d1, d2 = scratch.y1, scratch.d1, scratch.d2
    y2, dense_d2 = scratch.y2.reshape(-1, LANES), d2.reshape(-1, LANES)
    lanes.dense_lanes_backward(scratch.d3, weights.dense_w, y2, dense_d2)
    for first in range(0, len(y1), MAPS):  # some maps share what they read of the images
        for f in range(first, min(first + MAPS, len(y1))):
            sums = lanes.pool_map_backward(
                y1[f], weights.pool_w[f], d2[f], scratch.pool_w[f], d1[f - first]
            )
            grads.pool_b[f] += sums[0]
            grads.conv_b[f] += sums[1]
        lanes.conv_maps_backward(scratch.x, d1, grads.conv_w[first : first + MAPS])
