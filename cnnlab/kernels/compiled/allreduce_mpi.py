"""MPI's allreduce, called by compiled kernels, so that no Python runs between two steps.

Numba can call a C function whose address it is told. MPI's handles are integers in MPICH and
pointers in Open MPI. Both are passed as 64 bits: the calling conventions of Linux and macOS let the
callee take the lower half.
"""

import ctypes
import functools
from typing import NamedTuple

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


class Messages(NamedTuple):
    """What MPI_Allreduce needs to sum float32 in place, over the ranks of a communicator."""

    function: int
    in_place: int
    float32: int
    plus: int
    communicator: int


@functools.cache
def library() -> ctypes.CDLL:
    """The library in which MPI's functions are looked up: mpi4py, and so what it is linked to.

    Windows looks no further than mpi4py itself, see `reachable`.
    """
    from mpi4py import MPI

    return ctypes.CDLL(MPI.__file__)


def reachable() -> bool:
    """Whether MPI's functions are found by their names; if not, Python has to send the messages."""
    return hasattr(library(), "MPI_Allreduce")


def messages(comm) -> Messages:
    """Messages between the ranks of a communicator."""
    from mpi4py import MPI

    function = ctypes.cast(library().MPI_Allreduce, ctypes.c_void_p).value
    handles = (MPI._handleof(thing) for thing in (MPI.FLOAT, MPI.SUM, comm))
    return Messages(function, int(MPI.IN_PLACE), *handles)


@numba.njit
def sum_by_mpi(grads, messages):
    """The sum over all ranks of their gradients (M), in place. Raises RuntimeError if MPI fails."""
    if messages is None:
        return grads
    buffers = messages.in_place, grads.ctypes.data
    operation = grads.size, messages.float32, messages.plus, messages.communicator
    if call(messages.function, buffers + operation) != 0:
        raise RuntimeError("MPI_Allreduce: the gradients could not be added up over the ranks")
    return grads


@intrinsic
def call(typing, address, arguments):
    """Call the C function at an address with integers and pointers; returns its int."""

    def code(context, builder, signature, values):
        word = ir.IntType(64)
        words = [
            context.cast(builder, builder.extract_value(values[1], i), kind, types.int64)
            for i, kind in enumerate(signature.args[1])
        ]
        function = ir.FunctionType(ir.IntType(32), [word] * len(words)).as_pointer()
        return builder.call(builder.inttoptr(values[0], function), words)

    return types.int32(types.int64, arguments), code
