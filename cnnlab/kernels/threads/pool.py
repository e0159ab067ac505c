"""Pooling for `threads`: `prange` over collapsed loops, as in `threads.conv`."""

import numba
import numpy as np


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def pool_forward(x, w, b, z, stride=4):
    """Pooling, a map of an image a task: x (N,C,H,W), w (C,K,K), b (C) → z (N,C,P,Q).

    Windows everywhere, for the sake of long loops, though only every stride-th of them counts.
    """
    N, C, P, Q = z.shape
    K, W = w.shape[1], x.shape[3]
    for i in numba.prange(N * C):
        n, c = i // C, i % C
        flat = x[n, c].reshape(-1)
        row = np.full(((P - 1) * W + Q - 1) * stride + 1, b[c], x.dtype)
        for k in range(K):
            wk = w[c, k]
            for l in range(0, K - 3, 4):  # four taps a pass ...
                tap, w0, w1, w2, w3 = flat[k * W + l :], wk[l], wk[l + 1], wk[l + 2], wk[l + 3]
                for m in range(row.size):
                    near = w0 * tap[m] + w1 * tap[m + 1]
                    row[m] += near + w2 * tap[m + 2] + w3 * tap[m + 3]
            for l in range(K - K % 4, K):  # ... and those left over, one by one
                tap, w0 = flat[k * W + l :], wk[l]
                for m in range(row.size):
                    row[m] += w0 * tap[m]
        for p in range(P):
            out, line = z[n, c, p], row[p * W * stride :]
            for q in range(Q):
                out[q] = line[q * stride]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def pool_backward_input(dz, w, dx, stride=4):
    """Gradient with respect to the input: dz (N,C,P,Q), w (C,K,K) → dx (N,C,H,W).

    One task per map of an image.
    """
    N, C, P, Q = dz.shape
    K, W = w.shape[1], dx.shape[3]
    size = ((P - 1) * W + Q - 1) * stride + 1
    for i in numba.prange(N * C):
        n, c = i // C, i % C
        row = np.zeros(size + 6, dz.dtype)  # between three zeros and three zeros
        flat = dx[n, c].reshape(-1)
        flat[:] = np.float32(0)
        for p in range(P):
            line, out = dz[n, c, p], row[3 + p * W * stride :]
            for q in range(Q):
                out[q * stride] = line[q]
        for k in range(K):
            wk = w[c, k]
            for l in range(0, K - 3, 4):
                tap, w0, w1, w2, w3 = flat[k * W + l :], wk[l], wk[l + 1], wk[l + 2], wk[l + 3]
                for m in range(size + 3):
                    near = w0 * row[m + 3] + w1 * row[m + 2]
                    tap[m] += near + w2 * row[m + 1] + w3 * row[m]
            for l in range(K - K % 4, K):
                tap, w0 = flat[k * W + l :], wk[l]
                for m in range(size):
                    tap[m] += w0 * row[m + 3]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def pool_backward_weights(x, dz, dw, stride=4):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,C,P,Q) → dw (C,K,K).

    One task per weight.
    """
    N, C, P, Q = dz.shape
    K = dw.shape[1]
    for i in numba.prange(C * K * K):
        c, k, l = i // (K * K), i // K % K, i % K
        total = np.float32(0)
        for n in range(N):
            part = np.float32(0)
            for p in range(P):
                for q in range(Q):
                    part += dz[n, c, p, q] * x[n, c, p * stride + k, q * stride + l]
            total += part
        dw[c, k, l] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def pool_backward_bias(dz, db):
    """Gradient with respect to the bias, a map a task: dz (N,C,P,Q) → db (C)."""
    for c in numba.prange(dz.shape[1]):
        total = np.float32(0)
        for n in range(dz.shape[0]):
            flat, part = dz[n, c].reshape(-1), np.float32(0)
            for m in range(flat.size):
                part += flat[m]
            total += part
        db[c] = total


@numba.njit(parallel=True, error_model="numpy")
def max_pool_forward(x, z, stride=4):
    """Max pooling, a map per task: x (N,C,H,W) → z (N,C,P,Q)."""
    N, C, P, Q = z.shape
    for i in numba.prange(N * C):
        n, c = i // C, i % C
        row = np.empty(Q * stride, x.dtype)
        for p in range(P):
            row[:] = x[n, c, p * stride, : row.size]
            for k in range(1, stride):
                line = x[n, c, p * stride + k]
                for m in range(row.size):
                    row[m] = row[m] if (line[m] <= row[m]) | np.isnan(row[m]) else line[m]
            for q in range(Q):
                best = row[q * stride]
                for m in range(q * stride + 1, (q + 1) * stride):
                    best = best if (row[m] <= best) | np.isnan(best) else row[m]
                z[n, c, p, q] = best


@numba.njit(parallel=True, error_model="numpy")
def max_pool_backward(x, dz, dx, stride=4):
    """Max pooling backward, a map per task: x (N,C,H,W), dz (N,C,P,Q) → dx (N,C,H,W)."""
    N, C, P, Q = dz.shape
    W = x.shape[3]
    for i in numba.prange(N * C):
        n, c = i // C, i % C
        flat, out = x[n, c].reshape(-1), dx[n, c].reshape(-1)
        out[:] = np.float32(0)
        for p in range(P):
            for q in range(Q):
                winner = first = (p * W + q) * stride
                best = flat[first]
                for k in range(stride):
                    for m in range(first + k * W, first + k * W + stride):
                        best = best if (flat[m] <= best) | np.isnan(best) else flat[m]
                for k in range(stride - 1, -1, -1):
                    for m in range(first + k * W + stride - 1, first + k * W - 1, -1):
                        winner = m if (flat[m] == best) | np.isnan(flat[m]) else winner
                out[winner] = dz[n, c, p, q]
