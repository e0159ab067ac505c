"""Training in batches: 16 images side by side, so that work on a number becomes work on vectors.

Arrays here have the block's images as their innermost index, B = 16 of them. A row of pixels is
then W*B neighbouring numbers, and every loop runs along such rows, whatever the kernel size or the
window. A block's activations stay in the cache from the forward to the backward pass.
"""

import math

import numba
import numpy as np

LANES = 16  # float32 numbers in the widest vector there is, 512 bit


def zeros(*shape):
    """Float32 zeros that begin at the start of a cache line, so that no vector straddles two."""
    size = math.prod(shape)
    buffer = np.zeros(size + LANES, np.float32)
    skip = -buffer.ctypes.data % 64 // 4
    return buffer[skip : skip + size].reshape(shape)


@numba.njit
def interleave(rows, mixed):
    """Deal out rows like cards, four at a time: rows (4R,M) → mixed (R,4M).

    Done twice, it lays 16 images side by side. Its loop is the shuffling that compilers know best.
    """
    R = len(mixed)
    for r in range(R):
        r0, r1, r2, r3, out = rows[r], rows[r + R], rows[r + 2 * R], rows[r + 3 * R], mixed[r]
        for m in range(r0.size):
            out[4 * m] = r0[m]
            out[4 * m + 1] = r1[m]
            out[4 * m + 2] = r2[m]
            out[4 * m + 3] = r3[m]


@numba.njit
def to_lanes(images, x):
    """Lay images (N,M), N <= 16, side by side: x (M,16); lanes without an image become zero."""
    N, M = images.shape
    if N < x.shape[1]:
        x[:] = np.float32(0)
    for n in range(0, N - 3, 4):  # four by four: the compiler's gathers would be slower
        i0, i1, i2, i3 = images[n], images[n + 1], images[n + 2], images[n + 3]
        for m in range(M):
            x[m, n] = i0[m]
            x[m, n + 1] = i1[m]
            x[m, n + 2] = i2[m]
            x[m, n + 3] = i3[m]
    for n in range(N - N % 4, N):
        for m in range(M):
            x[m, n] = images[n, m]


@numba.njit
def from_lanes(x, images):
    """Take images (N,M), N <= 16, out of their lanes x (M,16)."""
    N, M = images.shape
    for n in range(0, N - 3, 4):
        i0, i1, i2, i3 = images[n], images[n + 1], images[n + 2], images[n + 3]
        for m in range(M):
            i0[m] = x[m, n]
            i1[m] = x[m, n + 1]
            i2[m] = x[m, n + 2]
            i3[m] = x[m, n + 3]
    for n in range(N - N % 4, N):
        for m in range(M):
            images[n, m] = x[m, n]


@numba.njit(fastmath=True, error_model="numpy")
def conv_map_forward(x, w, b, z):
    """One map of the convolution: x (C,H,W*16), w (C,K,K), b → z (P,Q*16)."""
    B = 16
    C, K, _ = w.shape
    for p in range(z.shape[0]):
        row = z[p]
        for m in range(row.size):
            row[m] = b
        for c in range(C):
            for k in range(K):
                taps, wk = x[c, p + k], w[c, k]
                for l in range(0, K - 4, 5):  # five taps a pass ...
                    tap = taps[l * B :]
                    w0, w1, w2, w3, w4 = wk[l], wk[l + 1], wk[l + 2], wk[l + 3], wk[l + 4]
                    for m in range(row.size):
                        near = w0 * tap[m] + w1 * tap[m + B] + w2 * tap[m + 2 * B]
                        row[m] += near + w3 * tap[m + 3 * B] + w4 * tap[m + 4 * B]
                for l in range(K - K % 5, K):  # ... and those left over, one by one
                    tap, w0 = taps[l * B :], wk[l]
                    for m in range(row.size):
                        row[m] += w0 * tap[m]


@numba.njit
def pool_weights_to_rows(w, rows):
    """Repeat each row of the pooling kernels w (F,S,S): rows (F,S,M), M = Q//S*S*16."""
    B = 16
    F, S, M = rows.shape
    for f in range(F):
        for k in range(S):
            first = rows[f, k, : S * B]
            for m in range(first.size):
                first[m] = w[f, k, m // B]
            for start in range(S * B, M, S * B):
                rows[f, k, start : start + S * B] = first


@numba.njit(fastmath=True, error_model="numpy")
def pool_weights_from_rows(rows, w):
    """Sum rows (F,S,M) over windows and images: w (F,S,S), `pool_weights_to_rows` reversed.

    Folds the rows, which become partial sums.
    """
    B = 16
    F, S, M = rows.shape
    for f in range(F):
        for k in range(S):
            fold = rows[f, k, : S * B]
            for first in range(S * B, M, S * B):
                window = rows[f, k, first : first + S * B]
                for m in range(fold.size):
                    fold[m] += window[m]
            for l in range(S):
                total, images = np.float32(0), fold[l * B : (l + 1) * B]
                for m in range(images.size):
                    total += images[m]
                w[f, k, l] = total


@numba.njit(fastmath=True, error_model="numpy")
def pool_map_forward(y, rows, b, window, z):
    """One map of the pooling: y (P,Q*16), kernel rows (S,M), b → z (P//S,M), M = Q//S*S*16.

    Every S-th pixel of z counts. `window` (M+S*16) is scratch space whose end is zero.
    """
    B = 16
    S, M = rows.shape
    for p in range(z.shape[0]):
        w0, y0, out = rows[0], y[p * S], z[p]
        for m in range(M):
            window[m] = w0[m] * y0[m]
        for k in range(1, S):
            w0, y0 = rows[k], y[p * S + k]
            for m in range(M):
                window[m] += w0[m] * y0[m]
        for m in range(M):
            out[m] = window[m] + b
        for l in range(1, S):
            part = window[l * B :]
            for m in range(M):
                out[m] += part[m]


@numba.njit(fastmath=True, error_model="numpy")
def pool_map_backward(y, rows, dz, window, drows, dx):
    """One map of the pooling, backwards and through the sigmoid before it.

    y (P,Q*16), rows (S,M), dz (P//S,M) with zeros but for every S-th pixel → adds to drows (S,M);
    writes the gradient at the preactivation to dx (P,W*16), whose columns from M on stay as they
    are. `window` (M+S*16) is scratch space.
    """
    B = 16
    S, M = rows.shape
    one = np.float32(1)
    for p in range(dz.shape[0]):
        d = dz[p]
        for m in range(M):
            window[m] = d[m]
        for l in range(1, S):  # fill each window with its gradient
            part = window[l * B :]
            for m in range(M - l * B):
                part[m] += d[m]
        for k in range(S):
            y0, w0, out = y[p * S + k], rows[k], dx[p * S + k]
            for m in range(M):
                out[m] = window[m] * w0[m] * (y0[m] * (one - y0[m]))
        for k in range(S):  # a loop of its own: with the one above it takes half as long again
            y0, dw = y[p * S + k], drows[k]
            for m in range(M):
                dw[m] += window[m] * y0[m]


@numba.njit(fastmath=True, error_model="numpy")
def conv_maps_backward(x, dz, dw, db):
    """Add what maps dz (F,P,W*16) give to the convolution's gradients dw (F,C,K,K) and db (F).

    x is (C,H,W*16); columns of dz beyond the convolution's output must be zero.
    """
    B = 16
    F, C, K, _ = dw.shape
    size = dz.shape[1] * dz.shape[2] - (K - 1) * B
    for f in range(F):
        total, d = np.float32(0), dz[f].reshape(-1)
        for m in range(size):
            total += d[m]
        db[f] += total
    for f in range(0, F, 2):  # two maps at a time share the taps
        g = min(f + 1, F - 1)
        d, e, once = dz[f].reshape(-1), dz[g].reshape(-1), np.float32(g - f)
        for c in range(C):
            for k in range(K):
                taps, u, v = x[c].reshape(-1)[k * x.shape[2] :], dw[f, c, k], dw[g, c, k]
                for l in range(0, K - 4, 5):
                    tap = taps[l * B :]
                    s0 = s1 = s2 = s3 = s4 = t0 = t1 = t2 = t3 = t4 = np.float32(0)
                    for m in range(size):
                        s0 += d[m] * tap[m]
                        s1 += d[m] * tap[m + B]
                        s2 += d[m] * tap[m + 2 * B]
                        s3 += d[m] * tap[m + 3 * B]
                        s4 += d[m] * tap[m + 4 * B]
                        t0 += e[m] * tap[m]
                        t1 += e[m] * tap[m + B]
                        t2 += e[m] * tap[m + 2 * B]
                        t3 += e[m] * tap[m + 3 * B]
                        t4 += e[m] * tap[m + 4 * B]
                    for j, s in enumerate((s0, s1, s2, s3, s4)):
                        u[l + j] += s
                    for j, t in enumerate((t0, t1, t2, t3, t4)):
                        v[l + j] += once * t
                for l in range(K - K % 5, K):
                    tap = taps[l * B :]
                    s0 = t0 = np.float32(0)
                    for m in range(size):
                        s0 += d[m] * tap[m]
                        t0 += e[m] * tap[m]
                    u[l] += s0
                    v[l] += once * t0
