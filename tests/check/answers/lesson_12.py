"""Answers to the exercises of lesson 12, right and wrong."""

import numba
import numpy as np

from cnnlab.lessons.lesson_12 import backward_input, reads, stores


@numba.njit(parallel=True)
def race_of_the_filters(dz, w, dx):
    """Images and filters collapsed: two filters of one image add to the same pixels."""
    N, F, P, Q = dz.shape
    C, K = dx.shape[1], w.shape[2]
    for n in range(N):
        dx[n] = np.float32(0)
    for i in numba.prange(N * F):
        n, f = i // F, i % F
        for c in range(C):
            for p in range(P):
                for q in range(Q):
                    for k in range(K):
                        for l in range(K):
                            dx[n, c, p + k, q + l] += w[f, c, k, l] * dz[n, f, p, q]


@numba.njit(parallel=True)
def only_for_one_thread(dz, w, dx):
    """Each thread sets all of dx to zero before it adds its own part."""
    N, F, P, Q = dz.shape
    C, K = dx.shape[1], w.shape[2]
    T = numba.get_num_threads()
    for t in numba.prange(T):
        for n in range(N):
            for c in range(C):
                for h in range(dx.shape[2]):
                    for j in range(dx.shape[3]):
                        dx[n, c, h, j] = np.float32(0)
        for i in range(N * C * t // T, N * C * (t + 1) // T):
            n, c = i // C, i % C
            for f in range(F):
                for p in range(P):
                    for q in range(Q):
                        for k in range(K):
                            for l in range(K):
                                dx[n, c, p + k, q + l] += w[f, c, k, l] * dz[n, f, p, q]


RIGHT = [
    (reads, lambda filters, kernel: filters * kernel**2),
    (stores, lambda channels, kernel: channels * kernel**2 + 1),
]
WRONG = [
    (backward_input, race_of_the_filters, "right on fewer"),
    (backward_input, only_for_one_thread, "right on fewer"),
    (reads, lambda filters, kernel: kernel**2 - 1, "too small"),
    (reads, lambda filters, kernel: filters * 24 * 24, "too large"),
    (stores, lambda channels, kernel: channels * kernel**2, "too small"),
    (stores, lambda channels, kernel: "many", "expected a number"),
]
