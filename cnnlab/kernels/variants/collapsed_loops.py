"""Lesson 10: one convolution, parallel over maps, over rows, and over the rows of all images."""

import numba
import numpy as np


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_maps(x, w, b, z):
    """Parallel over the maps of each image: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in range(N):
        for f in numba.prange(F):
            for p in range(P):
                out = z[n, f, p]
                out[:] = b[f]
                for c in range(C):
                    for k in range(K):
                        row = x[n, c, p + k]
                        for l in range(K):
                            tap, w0 = row[l:], w[f, c, k, l]
                            for q in range(Q):
                                out[q] += w0 * tap[q]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_rows(x, w, b, z):
    """Maps and rows of each image in one loop: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in range(N):
        for i in numba.prange(F * P):
            f, p = i // P, i % P
            out = z[n, f, p]
            out[:] = b[f]
            for c in range(C):
                for k in range(K):
                    row = x[n, c, p + k]
                    for l in range(K):
                        tap, w0 = row[l:], w[f, c, k, l]
                        for q in range(Q):
                            out[q] += w0 * tap[q]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_collapsed(x, w, b, z):
    """Images, maps and rows in one loop: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for i in numba.prange(N * F * P):
        n, f, p = i // (F * P), i // P % F, i % P
        out = z[n, f, p]
        out[:] = b[f]
        for c in range(C):
            for k in range(K):
                row = x[n, c, p + k]
                for l in range(K):
                    tap, w0 = row[l:], w[f, c, k, l]
                    for q in range(Q):
                        out[q] += w0 * tap[q]


@numba.njit(parallel=True)
def triangle_blocks(rows, sums):
    """Unequal tasks in blocks, one a thread: sums[i] adds up rows[0] … rows[i], of rows (M,L)."""
    for i in numba.prange(sums.size):
        total = np.float32(0)
        for j in range(i + 1):
            for l in range(rows.shape[1]):
                total += rows[j, l]
        sums[i] = total


@numba.njit(parallel=True)
def triangle_cyclic(rows, sums, n_threads):
    """The same tasks in turn: thread t takes t, t + n_threads, t + 2 n_threads, …"""
    for t in numba.prange(n_threads):
        for i in range(t, sums.size, n_threads):
            total = np.float32(0)
            for j in range(i + 1):
                for l in range(rows.shape[1]):
                    total += rows[j, l]
            sums[i] = total


@numba.njit(nogil=True)
def triangle_task(rows, sums, i):
    """One of these tasks, for a queue; it releases Python's lock, so several run at a time."""
    total = np.float32(0)
    for j in range(i + 1):
        for l in range(rows.shape[1]):
            total += rows[j, l]
    sums[i] = total
