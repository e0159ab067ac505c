"""Convolution and pooling for `threads`: `prange` over collapsed loops.

What is parallel is a block of the output, so no two threads write the same number and the result
does not depend on timing. A nest of loops is collapsed by hand into one long one, so that it
divides well: i counts over images and filters, n = i // F and f = i % F. Inside a task the loops
are those of `image_rows`.
"""

import numba
import numpy as np


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward(x, w, b, z, stride=1):
    """Convolution, a map of an image a task: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K, W = w.shape[1], w.shape[2], x.shape[3]
    for i in numba.prange(N * F):
        n, f = i // F, i % F
        row = np.full(((P - 1) * W + Q - 1) * stride + 1, b[f], x.dtype)
        for c in range(C):
            flat = x[n, c].reshape(-1)
            for k in range(K):
                wk = w[f, c, k]
                for l in range(0, K - 4, 5):  # five taps a pass ...
                    tap = flat[k * W + l :]
                    w0, w1, w2, w3, w4 = wk[l], wk[l + 1], wk[l + 2], wk[l + 3], wk[l + 4]
                    for m in range(row.size):
                        near = w0 * tap[m] + w1 * tap[m + 1] + w2 * tap[m + 2]
                        row[m] += near + w3 * tap[m + 3] + w4 * tap[m + 4]
                for l in range(K - K % 5, K):  # ... and those left over, one by one
                    tap, w0 = flat[k * W + l :], wk[l]
                    for m in range(row.size):
                        row[m] += w0 * tap[m]
        for p in range(P):
            out, line = z[n, f, p], row[p * W * stride :]
            if stride == 1:
                for q in range(Q):
                    out[q] = line[q]
            else:
                for q in range(Q):
                    out[q] = line[q * stride]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_input(dz, w, dx, stride=1):
    """Gradient with respect to the input: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W).

    One task per channel of an image.
    """
    N, F, P, Q = dz.shape
    C, K, W = w.shape[1], w.shape[2], dx.shape[3]
    size = ((P - 1) * W + Q - 1) * stride + 1
    for i in numba.prange(N * C):
        n, c = i // C, i % C
        row = np.zeros(size + 8, dz.dtype)  # between four zeros and four zeros
        flat = dx[n, c].reshape(-1)
        flat[:] = np.float32(0)
        for f in range(F):
            for p in range(P):
                line, out = dz[n, f, p], row[4 + p * W * stride :]
                for q in range(Q):
                    out[q * stride] = line[q]
            for k in range(K):
                wk = w[f, c, k]
                for l in range(0, K - 4, 5):
                    tap = flat[k * W + l :]
                    w0, w1, w2, w3, w4 = wk[l], wk[l + 1], wk[l + 2], wk[l + 3], wk[l + 4]
                    for m in range(size + 4):
                        near = w0 * row[m + 4] + w1 * row[m + 3] + w2 * row[m + 2]
                        tap[m] += near + w3 * row[m + 1] + w4 * row[m]
                for l in range(K - K % 5, K):
                    tap, w0 = flat[k * W + l :], wk[l]
                    for m in range(size):
                        tap[m] += w0 * row[m + 4]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_weights(x, dz, dw, stride=1):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K).

    A block of images and a filter a task, each with sums of its own; they are added up in order.
    """
    N, F, P, Q = dz.shape
    C, K, W = dw.shape[1], dw.shape[2], x.shape[3]
    blocks = min(N, 4)
    private = np.zeros((F, blocks, C, K, K), dw.dtype)
    for i in numba.prange(F * blocks):
        f, block = i // blocks, i % blocks
        sums = private[f, block]
        row = np.zeros(((P - 1) * W + Q - 1) * stride + 1, dz.dtype)
        for n in range(N * block // blocks, N * (block + 1) // blocks):
            for p in range(P):
                line, out = dz[n, f, p], row[p * W * stride :]
                for q in range(Q):
                    out[q * stride] = line[q]
            for c in range(C):
                flat = x[n, c].reshape(-1)
                for k in range(K):
                    for l in range(0, K - 4, 5):
                        tap = flat[k * W + l :]
                        s0 = s1 = s2 = s3 = s4 = np.float32(0)
                        for m in range(row.size):
                            s0 += row[m] * tap[m]
                            s1 += row[m] * tap[m + 1]
                            s2 += row[m] * tap[m + 2]
                            s3 += row[m] * tap[m + 3]
                            s4 += row[m] * tap[m + 4]
                        for j, s in enumerate((s0, s1, s2, s3, s4)):
                            sums[c, k, l + j] += s
                    for l in range(K - K % 5, K):
                        tap, s0 = flat[k * W + l :], np.float32(0)
                        for m in range(row.size):
                            s0 += row[m] * tap[m]
                        sums[c, k, l] += s0
    for f in range(F):
        for i in range(C * K * K):  # as a loop: Numba starts its threads for an array expression
            total = np.float32(0)
            for block in range(blocks):
                total += private[f, block].reshape(-1)[i]
            dw[f].reshape(-1)[i] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_bias(dz, db):
    """Gradient with respect to the bias, a filter a task: dz (N,F,P,Q) → db (F)."""
    for f in numba.prange(dz.shape[1]):
        total = np.float32(0)
        for n in range(dz.shape[0]):
            flat, part = dz[n, f].reshape(-1), np.float32(0)
            for m in range(flat.size):
                part += flat[m]
            total += part
        db[f] = total
