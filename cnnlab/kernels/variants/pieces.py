"""A training step whose batch goes through the network in pieces of a chosen size."""

import numba
import numpy as np

from cnnlab.kernels.registers import LANES
from cnnlab.kernels.vector import lanes
from cnnlab.kernels.vector.side_by_side import (
    backward,
    clear,
    forward,
    load_images,
    loss_and_dense_gradients,
    of_worker,
)


@numba.njit
def gradients_in_pieces(weights, grads, images, labels, scratch, n_blocks):
    """Loss and gradients: n_blocks blocks of LANES images go forward before the first comes back.

    Each block of a piece has memory of its own in `scratch`; images beyond whole pieces are left
    out.
    """
    loss, piece = 0.0, n_blocks * LANES
    clear(grads)
    scratch.pool_w[:] = np.float32(0)
    for first in range(0, len(images) - piece + 1, piece):
        blocks = np.arange(first, first + piece).reshape(n_blocks, LANES)
        for j in range(n_blocks):
            load_images(images, blocks[j], of_worker(scratch, j))
            forward(weights, of_worker(scratch, j))
        for j in range(n_blocks):
            loss += loss_and_dense_gradients(labels[blocks[j]], grads, of_worker(scratch, j))
            backward(weights, grads, of_worker(scratch, j))
    for j in range(1, n_blocks):
        scratch.pool_w[0] += scratch.pool_w[j]
    lanes.add_lanes(scratch.pool_w[0], grads.pool_w.reshape(-1))
    return loss
