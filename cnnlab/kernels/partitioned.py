"""Several ranks, as in the report: each computes a block of a layer's outputs, then all gather.

Every rank calls every function with the same arguments. `vector` computes the blocks.
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from cnnlab.kernels import vector
from cnnlab.kernels.contract import CONTRACT, STRIDES
from cnnlab.ranks import world
from cnnlab.ranks.schedules import block

communicator = world  # starts MPI when first called


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
    part = scratch(("part", comm.rank), counts[comm.rank], out.dtype).reshape(shapes[comm.rank])
    if part.size:
        compute(part, blocks[comm.rank])
    whole = out.reshape(-1) if axis == 0 else scratch(("whole", comm.rank), out.size, out.dtype)
    comm.Allgatherv(part, (whole, counts))  # block after block
    first = 0
    for where, shape, count in zip(blocks, shapes, counts, strict=True):
        if axis:  # copy the block to its place
            out[(slice(None),) * axis + (where,)] = whole[first : first + count].reshape(shape)
        first += count


@functools.lru_cache(maxsize=64)
def scratch(use: tuple[str, int], n: int, dtype) -> np.ndarray:
    """An array of n elements of a rank, reused: fresh memory costs more than filling it."""
    return np.empty(n, dtype)


def along(array: np.ndarray, axis: int, mine: slice) -> np.ndarray:
    """A contiguous copy of a slice along an axis."""
    return np.ascontiguousarray(array[(slice(None),) * axis + (mine,)])


def conv_forward(x, w, b, z, stride=1):
    """One block of the filters per rank: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    in_blocks(z, 1, lambda part, f: vector.conv_forward(x, w[f], b[f], part, stride))


def cut(operation: str, letter: str) -> Callable:
    """The operation with one block per rank of what the contract gives this letter.

    Each argument that has the letter is cut along its axis; "." is the first axis of any shape.
    """
    axes = [letters.find(letter) for letters in CONTRACT[operation].values()]
    usual = STRIDES.get(operation)

    def in_parts(*arguments, stride=usual):
        (*inputs, out), given = arguments[: len(axes)], arguments[len(axes) :]
        given = given or (() if stride is None else (stride,))

        def compute(part, mine):
            pairs = zip(inputs, axes[:-1], strict=True)
            blocks = (array if axis < 0 else along(array, axis, mine) for array, axis in pairs)
            getattr(vector, operation)(*blocks, part, *given)

        in_blocks(out, axes[-1], compute)

    in_parts.__name__ = operation
    return in_parts


conv_backward_input = cut("conv_backward_input", "C")
conv_backward_weights = cut("conv_backward_weights", "F")
conv_backward_bias = cut("conv_backward_bias", "F")
pool_forward = cut("pool_forward", "C")
pool_backward_input = cut("pool_backward_input", "C")
pool_backward_weights = cut("pool_backward_weights", "C")
pool_backward_bias = cut("pool_backward_bias", "C")
max_pool_forward = cut("max_pool_forward", "C")
max_pool_backward = cut("max_pool_backward", "C")
dense_forward = cut("dense_forward", "O")
dense_backward_input = cut("dense_backward_input", "D")
dense_backward_weights = cut("dense_backward_weights", "O")
dense_backward_bias = cut("dense_backward_bias", "O")
sigmoid = cut("sigmoid", ".")
sigmoid_backward = cut("sigmoid_backward", ".")
relu = cut("relu", ".")
relu_backward = cut("relu_backward", ".")


def cross_entropy(y, labels, dz):
    """The whole batch on every rank, since the loss is a sum: y (N,O), labels (N) → dz (N,O)."""
    return vector.cross_entropy(y, labels, dz)
