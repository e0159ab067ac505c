"""Lesson 12: the same multiply-adds in three orders, named after what stays in a register.

x (N,C,H,W), w (F,C,K,K), z and dz (N,F,P,Q); stride 1. Each kernel is parallel over a loop whose
iterations write to different elements.
"""

import numba
import numpy as np


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_output_stationary(x, w, b, z):
    """Gather: an output stays; the inputs and weights that it needs stream past."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in numba.prange(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    total = b[f]
                    for c in range(C):
                        for k in range(K):
                            for l in range(K):
                                total += w[f, c, k, l] * x[n, c, p + k, q + l]
                    z[n, f, p, q] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_input_stationary(x, w, b, z):
    """Scatter: an input stays; its products go to all outputs that need it."""
    N, F, P, Q = z.shape
    _, C, H, W = x.shape
    K = w.shape[2]
    for n in numba.prange(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    z[n, f, p, q] = b[f]
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    pixel = x[n, c, i, j]
                    for f in range(F):
                        for p in range(max(0, i - K + 1), min(P, i + 1)):
                            for q in range(max(0, j - K + 1), min(Q, j + 1)):
                                z[n, f, p, q] += w[f, c, i - p, j - q] * pixel


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_weight_stationary(x, w, b, z):
    """A weight stays; the whole image streams past."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in numba.prange(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    z[n, f, p, q] = b[f]
            for c in range(C):
                for k in range(K):
                    for l in range(K):
                        weight = w[f, c, k, l]
                        for p in range(P):
                            out, row = z[n, f, p], x[n, c, p + k, l:]
                            for q in range(Q):
                                out[q] += weight * row[q]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_input_gather(dz, w, dx):
    """Gather: an element of dx stays; it adds a product from each output that used it."""
    N, F, P, Q = dz.shape
    _, C, H, W = dx.shape
    K = w.shape[2]
    for n in numba.prange(N):
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    total = np.float32(0)
                    for f in range(F):
                        for p in range(max(0, i - K + 1), min(P, i + 1)):
                            for q in range(max(0, j - K + 1), min(Q, j + 1)):
                                total += w[f, c, i - p, j - q] * dz[n, f, p, q]
                    dx[n, c, i, j] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_input_scatter(dz, w, dx):
    """Scatter: an element of dz stays; its products go to all inputs of its window."""
    N, F, P, Q = dz.shape
    _, C, H, W = dx.shape
    K = w.shape[2]
    for n in numba.prange(N):
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    dx[n, c, i, j] = np.float32(0)
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    grad = dz[n, f, p, q]
                    for c in range(C):
                        for k in range(K):
                            for l in range(K):
                                dx[n, c, p + k, q + l] += w[f, c, k, l] * grad


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_weights_weight_stationary(x, dz, dw):
    """Gather: an element of dw stays; it adds a product from each image and position."""
    N, F, P, Q = dz.shape
    _, C, K, _ = dw.shape
    for i in numba.prange(F * C * K * K):
        f, c, k, l = i // (C * K * K), i // (K * K) % C, i // K % K, i % K
        total = np.float32(0)
        for n in range(N):
            for p in range(P):
                row, grads = x[n, c, p + k, l:], dz[n, f, p]
                for q in range(Q):
                    total += row[q] * grads[q]
        dw[f, c, k, l] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_weights_output_stationary(x, dz, dw):
    """Scatter: an element of dz stays; its products go to all weights of its filter."""
    N, F, P, Q = dz.shape
    _, C, K, _ = dw.shape
    for f in numba.prange(F):
        dw[f] = np.float32(0)
        for n in range(N):
            for p in range(P):
                for q in range(Q):
                    grad = dz[n, f, p, q]
                    for c in range(C):
                        for k in range(K):
                            for l in range(K):
                                dw[f, c, k, l] += x[n, c, p + k, q + l] * grad
