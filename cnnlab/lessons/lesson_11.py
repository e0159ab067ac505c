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


# --- the kernels of this lesson ------------------------------------------------------------------


@numba.njit(parallel=True)
def bias_race(dz, db):
    """WRONG on purpose: threads load, add and store the same element, and updates get lost."""
    F, size, flat = db.size, dz.shape[2] * dz.shape[3], dz.reshape(-1)
    for f in range(F):
        db[f] = 0
    for i in numba.prange(flat.size):
        db[i // size % F] += flat[i]


@numba.njit(parallel=True, fastmath=True)
def bias_by_filter(dz, db):
    """One task per filter, so no two threads share a sum; only as many tasks as filters."""
    for f in numba.prange(dz.shape[1]):
        total = np.float32(0)
        for n in range(dz.shape[0]):
            image = dz[n, f].reshape(-1)
            for m in range(image.size):
                total += image[m]
        db[f] = total


@numba.njit(parallel=True, fastmath=True)
def bias_private(dz, db, n_blocks):
    """Privatised: each block of images has its own sums, which are then added in order."""
    N, F = dz.shape[:2]
    private = np.zeros((n_blocks, F), dz.dtype)
    for t in numba.prange(n_blocks):
        for n in range(N * t // n_blocks, N * (t + 1) // n_blocks):
            for f in range(F):
                image, total = dz[n, f].reshape(-1), np.float32(0)
                for m in range(image.size):
                    total += image[m]
                private[t, f] += total
    for f in range(F):
        total = np.float32(0)
        for t in range(n_blocks):
            total += private[t, f]
        db[f] = total


@numba.njit(parallel=True, fastmath=True)
def bias_tree(dz, db):
    """A tree: the sum of each image, then pairs, pairs of pairs, … in ceil(log2(N)) rounds."""
    N, F = dz.shape[:2]
    sums = np.empty((N, F), dz.dtype)
    for i in numba.prange(N * F):
        image, total = dz[i // F, i % F].reshape(-1), np.float32(0)
        for m in range(image.size):
            total += image[m]
        sums[i // F, i % F] = total
    step = 1
    while step < N:
        for i in numba.prange((N - step + 2 * step - 1) // (2 * step)):
            for f in range(F):
                sums[2 * step * i, f] += sums[2 * step * i + step, f]
        step *= 2
    for f in range(F):
        db[f] = sums[0, f]


@numba.njit(parallel=True)
def count_apart(places, counts, rounds):
    """Thread t adds 1 to counts[places[t, …]] `rounds` times: counts int64, places (T,8) int64.

    The index is loaded every time, so that the compiler cannot keep the count in a register.
    """
    for t in numba.prange(len(places)):
        for i in range(rounds):
            counts[places[t, i & 7]] += 1


@numba.njit(parallel=True)
def sum_recognised(values):
    """`+=` on a scalar: Numba recognises a reduction and gives each thread its own sum."""
    total = 0.0
    for i in numba.prange(values.size):
        total += values[i]
    return total


@numba.njit(parallel=True)
def sum_not_recognised(values, classes, sums):
    """WRONG on purpose: `+=` on an array element is not a reduction to Numba, but a race."""
    for j in range(sums.size):
        sums[j] = 0
    for i in numba.prange(values.size):
        sums[classes[i]] += values[i]
