"""Several ranks, the report's way: each computes a block of a layer's outputs; then all gather all.

Every rank calls every function, with the same arguments. The blocks are computed by `vector`.
"""

import functools
import math

import numpy as np

from cnnlab.kernels import vector
from cnnlab.ranks import world
from cnnlab.ranks.schedules import block

communicator = functools.cache(world)  # MPI starts when it is first needed


def in_blocks(out: np.ndarray, axis: int, compute) -> None:
    """Fill `out`: this rank computes its block of an axis, and receives those of the others.

    `compute(part, mine)` fills the array `part`, which is this rank's slice `mine` of the axis.
    """
    comm = communicator()
    blocks = [slice(*block(i, comm.size, out.shape[axis])) for i in range(comm.size)]
    if comm.size == 1:
        compute(out, blocks[0])
        return
    shapes = [[*out.shape[:axis], s.stop - s.start, *out.shape[axis + 1 :]] for s in blocks]
    counts = [math.prod(shape) for shape in shapes]
    part = scratch("part", counts[comm.rank], out.dtype).reshape(shapes[comm.rank])
    if part.size:
        compute(part, blocks[comm.rank])
    whole = out.reshape(-1) if axis == 0 else scratch("whole", out.size, out.dtype)
    comm.Allgatherv(part, (whole, counts))  # the blocks one after the other
    first = 0
    for where, shape, count in zip(blocks, shapes, counts, strict=True):
        if axis:  # put it into its place
            out[(slice(None),) * axis + (where,)] = whole[first : first + count].reshape(shape)
        first += count


@functools.lru_cache(maxsize=64)
def scratch(use: str, n: int, dtype) -> np.ndarray:
    """An array of n elements, the same one each time: fresh memory costs more than filling it."""
    return np.empty(n, dtype)


def along(array: np.ndarray, axis: int, mine: slice) -> np.ndarray:
    """A contiguous copy of a slice of an axis."""
    return np.ascontiguousarray(array[(slice(None),) * axis + (mine,)])


def conv_forward(x, w, b, z, stride=1):
    """A block of the filters each: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    in_blocks(z, 1, lambda part, f: vector.conv_forward(x, w[f], b[f], part, stride))


def conv_backward_input(dz, w, dx, stride=1):
    """A block of the channels each: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    in_blocks(dx, 1, lambda out, c: vector.conv_backward_input(dz, along(w, 1, c), out, stride))


def conv_backward_weights(x, dz, dw, stride=1):
    """A block of the filters each: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    in_blocks(dw, 0, lambda out, f: vector.conv_backward_weights(x, along(dz, 1, f), out, stride))


def conv_backward_bias(dz, db):
    """A block of the filters each: dz (N,F,P,Q) → db (F)."""
    in_blocks(db, 0, lambda part, f: vector.conv_backward_bias(along(dz, 1, f), part))


def pool_forward(x, w, b, z, stride=4):
    """A block of the maps each: x (N,C,H,W), w (C,K,K), b (C) → z (N,C,P,Q)."""
    in_blocks(z, 1, lambda out, c: vector.pool_forward(along(x, 1, c), w[c], b[c], out, stride))


def pool_backward_input(dz, w, dx, stride=4):
    """A block of the maps each: dz (N,C,P,Q), w (C,K,K) → dx (N,C,H,W)."""
    in_blocks(dx, 1, lambda out, c: vector.pool_backward_input(along(dz, 1, c), w[c], out, stride))


def pool_backward_weights(x, dz, dw, stride=4):
    """A block of the maps each: x (N,C,H,W), dz (N,C,P,Q) → dw (C,K,K)."""

    def compute(part, c):
        vector.pool_backward_weights(along(x, 1, c), along(dz, 1, c), part, stride)

    in_blocks(dw, 0, compute)


def pool_backward_bias(dz, db):
    """A block of the maps each: dz (N,C,P,Q) → db (C)."""
    in_blocks(db, 0, lambda part, c: vector.pool_backward_bias(along(dz, 1, c), part))


def dense_forward(x, w, b, z):
    """A block of the outputs each: x (N,D), w (O,D), b (O) → z (N,O)."""
    in_blocks(z, 1, lambda part, o: vector.dense_forward(x, w[o], b[o], part))


def dense_backward_input(dz, w, dx):
    """A block of the inputs each: dz (N,O), w (O,D) → dx (N,D)."""
    in_blocks(dx, 1, lambda part, d: vector.dense_backward_input(dz, along(w, 1, d), part))


def dense_backward_weights(x, dz, dw):
    """A block of the outputs each: x (N,D), dz (N,O) → dw (O,D)."""
    in_blocks(dw, 0, lambda part, o: vector.dense_backward_weights(x, along(dz, 1, o), part))


def dense_backward_bias(dz, db):
    """A block of the outputs each: dz (N,O) → db (O)."""
    in_blocks(db, 0, lambda part, o: vector.dense_backward_bias(along(dz, 1, o), part))


def sigmoid(z, y):
    """A block of the first axis each: z → y, of any shape."""
    in_blocks(y, 0, lambda part, mine: vector.sigmoid(z[mine], part))


def sigmoid_backward(y, dy, dz):
    """A block of the first axis each: y, dy → dz, of any shape."""
    in_blocks(dz, 0, lambda part, mine: vector.sigmoid_backward(y[mine], dy[mine], part))


def cross_entropy(y, labels, dz):
    """Computed by every rank whole, since the loss is a sum: y (N,O), labels (N) → dz (N,O)."""
    return vector.cross_entropy(y, labels, dz)
