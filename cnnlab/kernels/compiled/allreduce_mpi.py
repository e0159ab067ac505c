"""MPI's allreduce, called by compiled kernels: between two steps there need be no Python.

A step on two ranks takes a quarter of a millisecond. Python's part of it, with what it pushes out
of the caches, would be a fifth. Numba can call a C function whose address it is told. MPI's handles
are integers for MPICH and pointers for Open MPI, and so are passed as 64 bits, which hold either:
the calling conventions of Linux and macOS let the callee take the lower half.
"""

import ctypes
import functools
from typing import NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


class Ranks(NamedTuple):
    """What a kernel needs to know to add up gradients over ranks; see `between`.

    `mine` and `total` (parts,M) are what this rank sends, and what comes back, for each part of its
    share of a batch (of a single part, it comes back to where it was).
    """

    rank: int
    size: int
    mine: np.ndarray
    total: np.ndarray
    requests: np.ndarray
    status: np.ndarray
    handles: tuple[int, int, int]
    allreduce: int
    iallreduce: int
    wait: int


@functools.cache
def library() -> ctypes.CDLL:
    """Where to look for MPI's functions: in mpi4py, and so in what it is linked to.

    Windows does not look further than into mpi4py itself, see `reachable`.
    """
    from mpi4py import MPI

    return ctypes.CDLL(MPI.__file__)


def reachable() -> bool:
    """Whether MPI's functions are found by their names; if not, messages go through Python."""
    return hasattr(library(), "MPI_Allreduce")


def between(comm, parts: int, n: int) -> Ranks:
    """For messages of n float32 between the ranks of a communicator.

    Each rank's share of a batch is taken in so many parts; if they are several, the message of one
    is on its way while the next is computed.
    """
    from mpi4py import MPI

    functions = library().MPI_Allreduce, library().MPI_Iallreduce, library().MPI_Wait
    return Ranks(
        comm.rank,
        comm.size,
        *np.zeros((2, parts, n), np.float32),
        np.zeros(parts, np.int64),
        np.zeros(16, np.int64),  # more than any MPI's
        tuple(MPI._handleof(thing) for thing in (MPI.FLOAT, MPI.SUM, comm)),
        *(ctypes.cast(function, ctypes.c_void_p).value for function in functions),
    )


@numba.njit
def parts(ranks):
    """In how many parts a batch is taken."""
    return 1 if ranks is None else len(ranks.mine)


@numba.njit
def share(chosen, ranks, part):
    """This rank's block of a batch `chosen` (N), or a part of it; it may be empty."""
    if ranks is None:
        return chosen
    first = chosen.size * ranks.rank // ranks.size
    n, of = chosen.size * (ranks.rank + 1) // ranks.size - first, parts(ranks)
    return chosen[first + n * part // of : first + n * (part + 1) // of]


@numba.njit
def send(step, ranks, part):
    """Add up the ranks' gradients `step` (M); where there are several parts, begin to."""
    if ranks is not None:
        mine, (kind, add, comm) = ranks.mine[part], ranks.handles
        for i in range(step.size):  # `mine[:] = step` would be ten times slower
            mine[i] = step[i]
        if parts(ranks) == 1:
            message = mine.ctypes.data, step.ctypes.data, mine.size, kind, add, comm
            fine(call(ranks.allreduce, message))
        else:
            total, request = ranks.total[part].ctypes.data, ranks.requests[part:].ctypes.data
            message = mine.ctypes.data, total, mine.size, kind, add, comm, request
            fine(call(ranks.iallreduce, message))


@numba.njit
def receive(step, ranks):
    """Of several parts, wait for the sums and add them up in `step` (M)."""
    if ranks is not None and parts(ranks) > 1:
        step[:] = np.float32(0)
        for part in range(parts(ranks)):
            request = ranks.requests[part:].ctypes.data
            fine(call(ranks.wait, (request, ranks.status.ctypes.data)))
            step += ranks.total[part]


@numba.njit
def fine(status):
    """Raise RuntimeError if an MPI function says that it failed."""
    if status != 0:
        raise RuntimeError("MPI: the gradients could not be added up over the ranks")


@intrinsic
def call(typing, address, arguments):
    """What the C function at an address returns, an int, for these integers and pointers."""

    def code(context, builder, signature, values):
        word = ir.IntType(64)
        words = [
            context.cast(builder, builder.extract_value(values[1], i), kind, types.int64)
            for i, kind in enumerate(signature.args[1])
        ]
        function = ir.FunctionType(ir.IntType(32), [word] * len(words)).as_pointer()
        return builder.call(builder.inttoptr(values[0], function), words)

    return types.int32(types.int64, arguments), code
