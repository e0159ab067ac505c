"""The exercises of lesson 11, and atomic additions, which Numba has for GPUs only."""

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from cnnlab.check import kinds, threads


@kinds.kernel(
    "conv_backward_weights",
    "Which indices of dw belong to one iteration alone? Collapse over these.",
    "One task per weight: i counts over F · C · K · K, and the sum over n, p and q is a variable "
    "of the iteration.",
    by=threads.kernel,
)
@numba.njit(parallel=True)
def weights(x, dz, dw):
    """One task per weight: the results are shared out, so no two tasks meet."""
    N, F, P, Q = dz.shape
    C, K = dw.shape[1], dw.shape[2]
    for i in numba.prange(F * C * K * K):
        f, c, k, l = i // (C * K * K), i // (K * K) % C, i // K % K, i % K
        total = np.float32(0)
        for n in range(N):
            for p in range(P):
                for q in range(Q):
                    total += x[n, c, p + k, q + l] * dz[n, f, p, q]
        dw[f, c, k, l] = total


@kinds.formula(
    lambda rng: {"n": int(rng.integers(1, 2**20))},
    "Each round halves the number of sums, rounded up.",
    "The least whole number r with 2 to the r at least n.",
)
def rounds(n):
    """2 to the power of the rounds must be at least n."""
    return (n - 1).bit_length()


@kinds.formula(
    lambda rng: {"sums": int(rng.integers(1, 200)), "line": int(rng.choice([32, 64, 128]))},
    "A float32 has four bytes. How many are in a line?",
    "Round the sums up to whole lines: lines of line // 4 numbers each.",
)
def row(sums, line):
    """Whole lines, and as few of them as hold the sums."""
    return -(-sums // (line // 4)) * (line // 4)


# --- atomic additions ---


@intrinsic
def add_float32(typing, address, number):
    """Atomic add to the float32 at an address; returns the previous value."""

    def code(context, builder, signature, values):
        place = builder.inttoptr(values[0], ir.FloatType().as_pointer())
        return builder.atomic_rmw("fadd", place, values[1], "monotonic")

    return types.float32(types.int64, types.float32), code


@numba.njit(parallel=True)
def bias_atomic(dz, db):
    """Load, add and store as one step that nothing comes between: right, and one at a time."""
    F, size, flat = db.size, dz.shape[2] * dz.shape[3], dz.reshape(-1)
    for f in range(F):
        db[f] = 0
    for i in numba.prange(flat.size):
        add_float32(db.ctypes.data + 4 * (i // size % F), flat[i])
