"""Lesson 11: reductions. The gradient with respect to the bias in parallel, wrong and right.

Every `bias_…` takes dz (N,F,P,Q) and writes db (F).
"""

import numba
import numpy as np


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
