"""Pooling for `vector`: the loops of `conv`, four taps a pass; and the maximum of each window."""

import numba
import numpy as np


@numba.njit(fastmath=True, error_model="numpy")
def pool_forward(x, w, b, z, stride=4):
    """Trainable pooling: x (N,C,H,W), w (C,K,K), b (C) → z (N,C,P,Q).

    Windows everywhere, for the sake of long loops, though only every stride-th of them counts.
    """
    N, C, P, Q = z.shape
    K, W = w.shape[1], x.shape[3]
    row = np.empty(((P - 1) * W + Q - 1) * stride + 1, x.dtype)
    for n in range(N):
        for c in range(C):
            flat = x[n, c].reshape(-1)
            row[:] = b[c]
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


@numba.njit(fastmath=True, error_model="numpy")
def pool_backward_input(dz, w, dx, stride=4):
    """Gradient with respect to the input: dz (N,C,P,Q), w (C,K,K) → dx (N,C,H,W)."""
    N, C, P, Q = dz.shape
    K, W = w.shape[1], dx.shape[3]
    size = ((P - 1) * W + Q - 1) * stride + 1
    row = np.zeros(size + 6, dz.dtype)  # between three zeros and three zeros
    dx[:] = np.float32(0)
    for n in range(N):
        for c in range(C):
            flat = dx[n, c].reshape(-1)
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


@numba.njit(fastmath=True, error_model="numpy")
def pool_backward_weights(x, dz, dw, stride=4):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,C,P,Q) → dw (C,K,K)."""
    N, C, P, Q = dz.shape
    K = dw.shape[1]
    dw[:] = np.float32(0)
    for n in range(N):
        for c in range(C):
            for k in range(K):
                for l in range(0, K - 3, 4):
                    s0 = s1 = s2 = s3 = np.float32(0)
                    for p in range(P):
                        tap, d = x[n, c, p * stride + k, l:], dz[n, c, p]
                        for q in range(Q):
                            m = q * stride
                            s0 += d[q] * tap[m]
                            s1 += d[q] * tap[m + 1]
                            s2 += d[q] * tap[m + 2]
                            s3 += d[q] * tap[m + 3]
                    for j, s in enumerate((s0, s1, s2, s3)):
                        dw[c, k, l + j] += s
                for l in range(K - K % 4, K):
                    s0 = np.float32(0)
                    for p in range(P):
                        tap, d = x[n, c, p * stride + k, l:], dz[n, c, p]
                        for q in range(Q):
                            s0 += d[q] * tap[q * stride]
                    dw[c, k, l] += s0


@numba.njit(fastmath=True, error_model="numpy")
def pool_backward_bias(dz, db):
    """Gradient with respect to the bias: dz (N,C,P,Q) → db (C)."""
    db[:] = np.float32(0)
    for n in range(dz.shape[0]):
        for c in range(dz.shape[1]):
            flat = dz[n, c].reshape(-1)
            total = np.float32(0)
            for m in range(flat.size):
                total += flat[m]
            db[c] += total


@numba.njit(error_model="numpy")
def max_pool_forward(x, z, stride=4):
    """Max pooling, windows of stride × stride: x (N,C,H,W) → z (N,C,P,Q).

    First down the columns, whole rows at a time; then along the row that is left. No fastmath,
    because it would lose NaN: it is never <= a number, and stays once it is the largest.
    """
    N, C, P, Q = z.shape
    row = np.empty(Q * stride, x.dtype)
    for n in range(N):
        for c in range(C):
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


@numba.njit(error_model="numpy")
def max_pool_backward(x, dz, dx, stride=4):
    """Max pooling backward: x (N,C,H,W), dz (N,C,P,Q) → dx (N,C,H,W).

    First the largest element; then its place, searched backwards so that the first of equals stays.
    Both select and never branch, since no processor can predict where the largest one is.
    """
    N, C, P, Q = dz.shape
    W = x.shape[3]
    dx[:] = np.float32(0)
    for n in range(N):
        for c in range(C):
            flat, out = x[n, c].reshape(-1), dx[n, c].reshape(-1)
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
