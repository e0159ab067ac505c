"""Several ranks, as in the report: each computes a block of a layer's outputs, then all gather.

Every rank calls every function with the same arguments. `vector` computes the blocks.
"""

import functools
import math

import numpy as np

from cnnlab.kernels import vector
from cnnlab.ranks import world
from cnnlab.ranks.schedules import block

communicator = functools.cache(world)  # starts MPI when first called


def in_blocks(out: np.ndarray, axis: int, compute) -> None:
    """Fill `out`: compute this rank's block along an axis, then gather the blocks of all ranks.

    `compute(part, mine)` fills `part`, the slice `mine` of the axis.
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
    comm.Allgatherv(part, (whole, counts))  # block after block
    first = 0
    for where, shape, count in zip(blocks, shapes, counts, strict=True):
        if axis:  # copy the block to its place
            out[(slice(None),) * axis + (where,)] = whole[first : first + count].reshape(shape)
        first += count


@functools.lru_cache(maxsize=64)
def scratch(use: str, n: int, dtype) -> np.ndarray:
    """An array of n elements, reused: fresh memory costs more than filling it."""
    return np.empty(n, dtype)


def along(array: np.ndarray, axis: int, mine: slice) -> np.ndarray:
    """A contiguous copy of a slice along an axis."""
    return np.ascontiguousarray(array[(slice(None),) * axis + (mine,)])


def conv_forward(x, w, b, z, stride=1):
    """One block of the filters per rank: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    in_blocks(z, 1, lambda part, f: vector.conv_forward(x, w[f], b[f], part, stride))


def conv_backward_input(dz, w, dx, stride=1):
    """One block of the channels per rank: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    in_blocks(dx, 1, lambda out, c: vector.conv_backward_input(dz, along(w, 1, c), out, stride))


def conv_backward_weights(x, dz, dw, stride=1):
    """One block of the filters per rank: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    in_blocks(dw, 0, lambda out, f: vector.conv_backward_weights(x, along(dz, 1, f), out, stride))


def conv_backward_bias(dz, db):
    """One block of the filters per rank: dz (N,F,P,Q) → db (F)."""
    in_blocks(db, 0, lambda part, f: vector.conv_backward_bias(along(dz, 1, f), part))


def pool_forward(x, w, b, z, stride=4):
    """One block of the maps per rank: x (N,C,H,W), w (C,K,K), b (C) → z (N,C,P,Q)."""
    in_blocks(z, 1, lambda out, c: vector.pool_forward(along(x, 1, c), w[c], b[c], out, stride))


def pool_backward_input(dz, w, dx, stride=4):
    """One block of the maps per rank: dz (N,C,P,Q), w (C,K,K) → dx (N,C,H,W)."""
    in_blocks(dx, 1, lambda out, c: vector.pool_backward_input(along(dz, 1, c), w[c], out, stride))


def pool_backward_weights(x, dz, dw, stride=4):
    """One block of the maps per rank: x (N,C,H,W), dz (N,C,P,Q) → dw (C,K,K)."""

    def compute(part, c):
        vector.pool_backward_weights(along(x, 1, c), along(dz, 1, c), part, stride)

    in_blocks(dw, 0, compute)


def pool_backward_bias(dz, db):
    """One block of the maps per rank: dz (N,C,P,Q) → db (C)."""
    in_blocks(db, 0, lambda part, c: vector.pool_backward_bias(along(dz, 1, c), part))


def max_pool_forward(x, z, stride=4):
    """One block of the maps per rank: x (N,C,H,W) → z (N,C,P,Q)."""
    in_blocks(z, 1, lambda out, c: vector.max_pool_forward(along(x, 1, c), out, stride))


def max_pool_backward(x, dz, dx, stride=4):
    """One block of the maps per rank: x (N,C,H,W), dz (N,C,P,Q) → dx (N,C,H,W)."""

    def compute(part, c):
        vector.max_pool_backward(along(x, 1, c), along(dz, 1, c), part, stride)

    in_blocks(dx, 1, compute)


def dense_forward(x, w, b, z):
    """One block of the outputs per rank: x (N,D), w (O,D), b (O) → z (N,O)."""
    in_blocks(z, 1, lambda part, o: vector.dense_forward(x, w[o], b[o], part))


def dense_backward_input(dz, w, dx):
    """One block of the inputs per rank: dz (N,O), w (O,D) → dx (N,D)."""
    in_blocks(dx, 1, lambda part, d: vector.dense_backward_input(dz, along(w, 1, d), part))


def dense_backward_weights(x, dz, dw):
    """One block of the outputs per rank: x (N,D), dz (N,O) → dw (O,D)."""
    in_blocks(dw, 0, lambda part, o: vector.dense_backward_weights(x, along(dz, 1, o), part))


def dense_backward_bias(dz, db):
    """One block of the outputs per rank: dz (N,O) → db (O)."""
    in_blocks(db, 0, lambda part, o: vector.dense_backward_bias(along(dz, 1, o), part))


def sigmoid(z, y):
    """One block of the first axis per rank: z → y, of any shape."""
    in_blocks(y, 0, lambda part, mine: vector.sigmoid(z[mine], part))


def sigmoid_backward(y, dy, dz):
    """One block of the first axis per rank: y, dy → dz, of any shape."""
    in_blocks(dz, 0, lambda part, mine: vector.sigmoid_backward(y[mine], dy[mine], part))


def relu(z, y):
    """One block of the first axis per rank: z → y, of any shape."""
    in_blocks(y, 0, lambda part, mine: vector.relu(z[mine], part))


def relu_backward(y, dy, dz):
    """One block of the first axis per rank: y, dy → dz, of any shape."""
    in_blocks(dz, 0, lambda part, mine: vector.relu_backward(y[mine], dy[mine], part))


def cross_entropy(y, labels, dz):
    """The whole batch on every rank, since the loss is a sum: y (N,O), labels (N) → dz (N,O)."""
    return vector.cross_entropy(y, labels, dz)
