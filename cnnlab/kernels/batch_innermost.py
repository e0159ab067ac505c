"""Training in batches: 16 images side by side, so that work on a number becomes work on vectors.

Arrays here have the block's images as their innermost index, B = 16 of them. A row of pixels is
then W*B neighbouring numbers, and every loop runs along such rows, whatever the kernel size or the
window. A block's activations stay in the cache from the forward to the backward pass.
"""

import numba
import numpy as np

LANES = 16  # float32 numbers in the widest vector there is, 512 bit


@numba.njit
def zeros(size):
    """`size` float32 zeros that begin at the start of a cache line: no vector straddles two."""
    buffer = np.zeros(size + 16, np.float32)
    skip = -buffer.ctypes.data % 64 // 4
    return buffer[skip : skip + size]


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
def conv_row_forward(x, w, b, p, z):
    """Row p of the convolution's output: x (C,H,W*16), w (F,C,K,K), b (F) → z (F,Q*16)."""
    B = 16
    F, C, K, _ = w.shape
    for f in range(F):
        row, bias = z[f], b[f]
        if K < 5:
            row[:] = bias
        for c in range(C):
            for k in range(K):
                taps, wk = x[c, p + k], w[f, c, k]
                for l in range(0, K - 4, 5):  # five taps a pass ...
                    tap = taps[l * B :]
                    w0, w1, w2, w3, w4 = wk[l], wk[l + 1], wk[l + 2], wk[l + 3], wk[l + 4]
                    if c + k + l == 0:  # ... the first of which sets the bias, too ...
                        for m in range(row.size):
                            near = bias + w0 * tap[m] + w1 * tap[m + B] + w2 * tap[m + 2 * B]
                            row[m] = near + w3 * tap[m + 3 * B] + w4 * tap[m + 4 * B]
                        continue
                    for m in range(row.size):
                        near = w0 * tap[m] + w1 * tap[m + B] + w2 * tap[m + 2 * B]
                        row[m] += near + w3 * tap[m + 3 * B] + w4 * tap[m + 4 * B]
                for l in range(K - K % 5, K):  # ... and those left over, one by one
                    tap, w0 = taps[l * B :], wk[l]
                    for m in range(row.size):
                        row[m] += w0 * tap[m]


@numba.njit
def pool_weights_to_rows(w, rows):
    """Repeat each row of the pooling kernels w (F,S,S) along an output row: rows (F,S,Q*16)."""
    B = 16
    F, S, M = rows.shape
    rows[:] = np.float32(0)
    for f in range(F):
        for k in range(S):
            for m in range(M // (S * B) * S * B):
                rows[f, k, m] = w[f, k, m // B % S]


@numba.njit
def pool_weights_from_rows(rows, w):
    """Sum rows (F,S,Q*16) over windows and images: w (F,S,S), `pool_weights_to_rows` reversed."""
    B = 16
    F, S, M = rows.shape
    w[:] = np.float32(0)
    for f in range(F):
        for k in range(S):
            for m in range(M // (S * B) * S * B):
                w[f, k, m // B % S] += rows[f, k, m]


@numba.njit(fastmath=True, error_model="numpy")
def pool_row_forward(y, rows, b, p, z):
    """Row p of the pooling of y (P,F,Q*16) by kernel rows (F,S,Q*16): z (F,P//S,Q//S*16)."""
    B = 16
    F, S, M = rows.shape
    window = np.zeros(M + S * B, np.float32)
    for f in range(F):
        for k in range(S):
            y0, w0 = y[p * S + k, f], rows[f, k]
            if k == 0:
                for m in range(M):
                    window[m] = w0[m] * y0[m]
            else:
                for m in range(M):
                    window[m] += w0[m] * y0[m]
        out = z[f, p]
        for q in range(out.size // B):
            total = out[q * B : q * B + B]
            for t in range(total.size):
                total[t] = b[f]
            for l in range(S):
                part = window[(q * S + l) * B :]
                for t in range(total.size):
                    total[t] += part[t]


@numba.njit(fastmath=True, error_model="numpy")
def pool_row_backward(y, rows, dz, p, drows, dx):
    """Row p of the pooling, backwards and through the sigmoid before it.

    y (P,F,Q*16), rows (F,S,Q*16), dz (F,P//S,Q//S*16) → adds to drows (F,S,Q*16); writes the
    gradient at the preactivation of the S rows below to dx (F,S,W*16), whose columns from Q on stay
    as they are.
    """
    B = 16
    F, S, M = rows.shape
    one = np.float32(1)
    spread = np.zeros(M, np.float32)
    for f in range(F):
        d = dz[f, p]
        for q in range(d.size // B):
            dq = d[q * B : q * B + B]
            for l in range(S):
                part = spread[(q * S + l) * B :]
                for t in range(dq.size):
                    part[t] = dq[t]
        for k in range(S):
            y0, w0, dw, out = y[p * S + k, f], rows[f, k], drows[f, k], dx[f, k]
            for m in range(M):
                dw[m] += spread[m] * y0[m]
            for m in range(M):
                out[m] = spread[m] * w0[m] * (y0[m] * (one - y0[m]))


@numba.njit(fastmath=True, error_model="numpy")
def conv_band_backward(x, dz, p, dw, db):
    """Add what rows p, p+1, … of dz (F,S,W*16) give to the gradients dw (F,C,K,K) and db (F).

    x is (C,H,W*16); columns of dz beyond the convolution's output must be zero.
    """
    B = 16
    F, C, K, _ = dw.shape
    size = dz.shape[1] * dz.shape[2] - (K - 1) * B
    for f in range(F):
        d = dz[f].reshape(-1)
        s0 = np.float32(0)
        for m in range(size):
            s0 += d[m]
        db[f] += s0
        for c in range(C):
            flat = x[c].reshape(-1)
            for k in range(K):
                for l in range(0, K - 4, 5):
                    tap = flat[(p + k) * x.shape[2] + l * B :]
                    s0 = s1 = s2 = s3 = s4 = np.float32(0)
                    for m in range(size):
                        s0 += d[m] * tap[m]
                        s1 += d[m] * tap[m + B]
                        s2 += d[m] * tap[m + 2 * B]
                        s3 += d[m] * tap[m + 3 * B]
                        s4 += d[m] * tap[m + 4 * B]
                    dw[f, c, k, l] += s0
                    dw[f, c, k, l + 1] += s1
                    dw[f, c, k, l + 2] += s2
                    dw[f, c, k, l + 3] += s3
                    dw[f, c, k, l + 4] += s4
                for l in range(K - K % 5, K):
                    tap = flat[(p + k) * x.shape[2] + l * B :]
                    s0 = np.float32(0)
                    for m in range(size):
                        s0 += d[m] * tap[m]
                    dw[f, c, k, l] += s0
