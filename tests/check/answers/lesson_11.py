"""Answers to the exercises of lesson 11, right and wrong."""

import numba
import numpy as np

from cnnlab.lessons.lesson_11 import rounds, row, weights


@numba.njit(parallel=True)
def by_weight(x, dz, dw):
    _, C, K, _ = dw.shape
    flat = dw.reshape(-1)
    for i in numba.prange(flat.size):
        f, c, k, l = i // (C * K * K), i // (K * K) % C, i // K % K, i % K
        total = np.float32(0)
        for n in range(len(x)):
            for p in range(dz.shape[2]):
                for q in range(dz.shape[3]):
                    total += x[n, c, p + k, q + l] * dz[n, f, p, q]
        flat[i] = total


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
def swapped_axes(x, dz, dw):
    F, C, K, _ = dw.shape
    for f in numba.prange(F):
        for c in range(C):
            for k in range(K):
                for l in range(K):
                    total = np.float32(0)
                    for n in range(len(x)):
                        for p in range(dz.shape[2]):
                            for q in range(dz.shape[3]):
                                total += x[n, c, p + k, q + l] * dz[n, f, p, q]
                    dw[f, c, l, k] = total


@numba.njit(parallel=True)
def stops_before_the_border(x, dz, dw):
    F, C, K, _ = dw.shape
    for f in numba.prange(F):
        for c in range(C):
            for k in range(K):
                for l in range(K):
                    total = np.float32(0)
                    for n in range(len(x)):
                        for p in range(dz.shape[2]):
                            for q in range(dz.shape[3] - 1):
                                total += x[n, c, p + k, q + l] * dz[n, f, p, q]
                    dw[f, c, k, l] = total


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


def returns_the_inputs_memory(x, dz, dw):
    K = dw.shape[2]
    return x[: len(dw), :, :K, :K]


RIGHT = [
    (weights, by_weight),
    (weights, private_for_each_thread),
    (rounds, lambda n: np.ceil(np.log2(n))),
    (row, lambda sums, line: -(-4 * sums // line) * line / 4),
]
WRONG = [
    (weights, race, "right on fewer"),
    (weights, swapped_axes, "axes in the order (0, 1, 3, 2)"),
    (weights, stops_before_the_border, "dw["),
    (weights, only_for_one_thread, "right on fewer"),
    (weights, returns_the_inputs_memory, "never written"),
    (rounds, lambda n: n + 1, "too large"),
    (rounds, lambda n: np.log2(n) - 1, "too small"),
    (row, lambda sums, line: sums - 1, "too small"),
    (row, ..., "not yet answered"),
]
