"""Answers to the exercises of lesson 11, right and wrong."""

import numba
import numpy as np

from cnnlab.lessons.lesson_11 import rounds, row, weights


@numba.njit(parallel=True)
def private_for_each_thread(x, dz, dw):
    N, F, P, Q = dz.shape
    _, C, K, _ = dw.shape
    T = numba.get_num_threads()
    private = np.zeros((T, F, C, K, K), np.float32)
    for t in numba.prange(T):
        for n in range(N * t // T, N * (t + 1) // T):
            for f in range(F):
                for c in range(C):
                    for k in range(K):
                        for l in range(K):
                            total = np.float32(0)
                            for p in range(P):
                                for q in range(Q):
                                    total += x[n, c, p + k, q + l] * dz[n, f, p, q]
                            private[t, f, c, k, l] += total
    for f in range(F):
        dw[f] = np.float32(0)
        for t in range(T):
            dw[f] += private[t, f]


@numba.njit(parallel=True)
def race(x, dz, dw):
    N, F, P, Q = dz.shape
    _, C, K, _ = dw.shape
    for f in range(F):
        dw[f] = np.float32(0)
    for n in numba.prange(N):
        for f in range(F):
            for c in range(C):
                for k in range(K):
                    for l in range(K):
                        for p in range(P):
                            for q in range(Q):
                                dw[f, c, k, l] += x[n, c, p + k, q + l] * dz[n, f, p, q]


@numba.njit(parallel=True)
def only_for_one_thread(x, dz, dw):
    """Private sums, of which only the first thread's are handed out."""
    N, F, P, Q = dz.shape
    _, C, K, _ = dw.shape
    T = numba.get_num_threads()
    private = np.zeros((T, F, C, K, K), np.float32)
    for t in numba.prange(T):
        for n in range(N * t // T, N * (t + 1) // T):
            for f in range(F):
                for c in range(C):
                    for k in range(K):
                        for l in range(K):
                            for p in range(P):
                                for q in range(Q):
                                    private[t, f, c, k, l] += x[n, c, p + k, q + l] * dz[n, f, p, q]
    for f in range(F):
        dw[f] = private[0, f]


RIGHT = [
    (weights, private_for_each_thread),
    (rounds, lambda n: np.ceil(np.log2(n))),
    (row, lambda sums, line: -(-4 * sums // line) * line / 4),
]
WRONG = [
    (weights, race, "right on fewer"),
    (weights, only_for_one_thread, "right on fewer"),
    (rounds, lambda n: n + 1, "too large"),
    (rounds, lambda n: np.log2(n) - 1, "too small"),
    (row, lambda sums, line: sums - 1, "too small"),
]
