"""Answers to the exercises of lesson 12, right and wrong."""

import numba
import numpy as np

from cnnlab.lessons.lesson_12 import fast_weights, rows_of_pixels, whose_loop


@numba.njit(parallel=True)
def task_a_row_of_dz(dz, w, dx):
    """The rows of dz are shared out, not those of dx: neighbours add to the same pixels."""
    (N, F, P, Q), (_, C, K, _) = dz.shape, w.shape
    dx[:] = np.float32(0)
    for task in numba.prange(N * P):
        n, p = task // P, task % P
        for f in range(F):
            for c in range(C):
                for k in range(K):
                    for l in range(K):
                        for q in range(Q):
                            dx[n, c, p + k, q + l] += w[f, c, k, l] * dz[n, f, p, q]


@numba.njit(parallel=True)
def filter_not_turned(dz, w, dx):
    """Row k of the filter is taken for row i - p counted from below."""
    (N, F, P, Q), (_, C, H, _), K = dz.shape, dx.shape, w.shape[2]
    for task in numba.prange(N * C * H):
        n, c, i = task // (C * H), task // H % C, task % H
        dx[n, c, i] = np.float32(0)
        for f in range(F):
            for p in range(max(0, i - K + 1), min(P, i + 1)):
                for l in range(K):
                    for q in range(Q):
                        dx[n, c, i, q + l] += w[f, c, K - 1 - i + p, l] * dz[n, f, p, q]


@numba.njit(parallel=True)
def task_an_image(x, dz, dw):
    """Images are shared out, and all of them add to the same weights."""
    (N, F, P, Q), (_, C, K, _) = dz.shape, dw.shape
    dw[:] = np.float32(0)
    for n in numba.prange(N):
        for f in range(F):
            for c in range(C):
                for k in range(K):
                    for l in range(K):
                        for p in range(P):
                            for q in range(Q):
                                dw[f, c, k, l] += dz[n, f, p, q] * x[n, c, p + k, q + l]


@numba.njit(parallel=True)
def never_cleared(x, dz, dw):
    """A sum that goes on from what dw held before."""
    (N, F, P, Q), (_, C, K, _) = dz.shape, dw.shape
    for f in numba.prange(F):
        for n in range(N):
            for c in range(C):
                for k in range(K):
                    for l in range(K):
                        for p in range(P):
                            for q in range(Q):
                                dw[f, c, k, l] += dz[n, f, p, q] * x[n, c, p + k, q + l]


RIGHT = [(whose_loop, "weight stationary")]
WRONG = [
    (rows_of_pixels, task_a_row_of_dz, "a race"),
    (rows_of_pixels, filter_not_turned, "not yet right"),
    (fast_weights, task_an_image, "a race"),
    (fast_weights, never_cleared, "never written"),
    (whose_loop, "output stationary", "whose loop: output stationary"),
    (whose_loop, "weights in locals", "whose loop: weights in locals"),
    (whose_loop, "a", "expected one of"),
]
