"""Atomic addition to a float32, which Numba has for GPUs only: written here in LLVM's terms."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def add_float32(typing, address, number):
    """Atomic add to the float32 at an address; returns the previous value."""

    def code(context, builder, signature, values):
        place = builder.inttoptr(values[0], ir.FloatType().as_pointer())
        return builder.atomic_rmw("fadd", place, values[1], "monotonic")

    return types.float32(types.int64, types.float32), code
