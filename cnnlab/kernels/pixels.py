"""The contract's functions on one core: loops that the compiler turns into vector instructions.

A long innermost loop over neighbouring numbers, so that one instruction works on 8 or 16 of them:
an image is one flat row, in which the output at (p, q) lies at p*W + q like the input. Several taps
a pass, so that a number once loaded is used often. And arithmetic in place of `exp`, because a loop
that calls a function cannot become vector instructions.
"""

import numba
import numpy as np


@numba.njit(fastmath=True, error_model="numpy")
def conv_forward(x, w, b, z, stride=1):
    """Convolution: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K, W = w.shape[1], w.shape[2], x.shape[3]
    for n in numba.prange(N):
        row = np.empty(((P - 1) * W + Q - 1) * stride + 1, x.dtype)
        for f in range(F):
            row[:] = b[f]
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
                for q in range(Q):
                    out[q] = line[q * stride]


@numba.njit(fastmath=True, error_model="numpy")
def conv_backward_input(dz, w, dx, stride=1):
    """Gradient with respect to the input: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    N, F, P, Q = dz.shape
    C, K, W = w.shape[1], w.shape[2], dx.shape[3]
    size = ((P - 1) * W + Q - 1) * stride + 1
    for n in numba.prange(N):
        row = np.zeros(size + 8, dz.dtype)  # between four zeros and four zeros
        dx[n] = np.float32(0)
        for f in range(F):
            for p in range(P):
                line, out = dz[n, f, p], row[4 + p * W * stride :]
                for q in range(Q):
                    out[q * stride] = line[q]
            for c in range(C):
                flat = dx[n, c].reshape(-1)
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


@numba.njit(fastmath=True, error_model="numpy")
def conv_backward_weights(x, dz, dw, stride=1):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    N, F, P, Q = dz.shape
    C, K, W = dw.shape[1], dw.shape[2], x.shape[3]
    for f in numba.prange(F):
        row = np.zeros(((P - 1) * W + Q - 1) * stride + 1, dz.dtype)
        dw[f] = np.float32(0)
        for n in range(N):
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
                            dw[f, c, k, l + j] += s
                    for l in range(K - K % 5, K):
                        tap = flat[k * W + l :]
                        s0 = np.float32(0)
                        for m in range(row.size):
                            s0 += row[m] * tap[m]
                        dw[f, c, k, l] += s0


@numba.njit(fastmath=True, error_model="numpy")
def conv_backward_bias(dz, db):
    """Gradient with respect to the bias: dz (N,F,P,Q) → db (F)."""
    for f in numba.prange(len(db)):
        total = np.float32(0)
        for n in range(len(dz)):
            flat = dz[n, f].reshape(-1)
            for m in range(flat.size):
                total += flat[m]
        db[f] = total


@numba.njit(fastmath=True, error_model="numpy")
def pool_forward(x, w, b, z, stride=4):
    """Trainable pooling: x (N,C,H,W), w (C,K,K), b (C) → z (N,C,P,Q).

    Windows everywhere, for the sake of long loops, though only every stride-th of them counts.
    """
    N, C, P, Q = z.shape
    K, W = w.shape[1], x.shape[3]
    for n in numba.prange(N):
        row = np.empty(((P - 1) * W + Q - 1) * stride + 1, x.dtype)
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
    for n in numba.prange(N):
        row = np.zeros(size + 6, dz.dtype)  # between three zeros and three zeros
        dx[n] = np.float32(0)
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
    for c in numba.prange(C):
        dw[c] = np.float32(0)
        for n in range(N):
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


pool_backward_bias = conv_backward_bias


@numba.njit(error_model="numpy")
def max_pool_forward(x, z, stride=4):
    """Max pooling, windows of stride × stride: x (N,C,H,W) → z (N,C,P,Q).

    First down the columns, whole rows at a time; then along the row that is left. No fastmath,
    because it would lose NaN: it is never <= a number, and stays once it is the largest.
    """
    N, C, P, Q = z.shape
    for n in numba.prange(N):
        row = np.empty(Q * stride, x.dtype)
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
    for n in numba.prange(N):
        dx[n] = np.float32(0)
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


@numba.njit(fastmath=True, error_model="numpy")
def dense_forward(x, w, b, z):
    """Fully connected layer: x (N,D), w (O,D), b (O) → z (N,O)."""
    O = w.shape[0]
    for n in numba.prange(len(z)):
        for o in range(0, O - 1, 2):  # two outputs a pass ...
            s0 = s1 = np.float32(0)
            for i in range(x.shape[1]):
                s0 += w[o, i] * x[n, i]
                s1 += w[o + 1, i] * x[n, i]
            z[n, o] = b[o] + s0
            z[n, o + 1] = b[o + 1] + s1
        for o in range(O - O % 2, O):  # ... and the one left over
            s0 = np.float32(0)
            for i in range(x.shape[1]):
                s0 += w[o, i] * x[n, i]
            z[n, o] = b[o] + s0


@numba.njit(fastmath=True, error_model="numpy")
def dense_backward_input(dz, w, dx):
    """Gradient with respect to the input: dz (N,O), w (O,D) → dx (N,D)."""
    O = w.shape[0]
    for n in numba.prange(len(dz)):
        dx[n] = np.float32(0)
        for o in range(0, O - 4, 5):  # five outputs a pass ...
            d0, d1, d2, d3, d4 = dz[n, o], dz[n, o + 1], dz[n, o + 2], dz[n, o + 3], dz[n, o + 4]
            for i in range(dx.shape[1]):
                near = d0 * w[o, i] + d1 * w[o + 1, i] + d2 * w[o + 2, i]
                dx[n, i] += near + d3 * w[o + 3, i] + d4 * w[o + 4, i]
        for o in range(O - O % 5, O):  # ... and those left over, one by one
            for i in range(dx.shape[1]):
                dx[n, i] += dz[n, o] * w[o, i]


@numba.njit(fastmath=True, error_model="numpy")
def dense_backward_weights(x, dz, dw):
    """Gradient with respect to the weights: x (N,D), dz (N,O) → dw (O,D)."""
    N = x.shape[0]
    for o in numba.prange(len(dw)):
        dw[o] = np.float32(0)
        for n in range(0, N - 3, 4):  # four images a pass ...
            d0, d1, d2, d3 = dz[n, o], dz[n + 1, o], dz[n + 2, o], dz[n + 3, o]
            for i in range(dw.shape[1]):
                near = d0 * x[n, i] + d1 * x[n + 1, i]
                dw[o, i] += near + d2 * x[n + 2, i] + d3 * x[n + 3, i]
        for n in range(N - N % 4, N):  # ... and those left over, one by one
            for i in range(dw.shape[1]):
                dw[o, i] += dz[n, o] * x[n, i]


@numba.njit(fastmath=True, error_model="numpy")
def dense_backward_bias(dz, db):
    """Gradient with respect to the bias: dz (N,O) → db (O)."""
    for o in numba.prange(len(db)):
        total = np.float32(0)
        for n in range(len(dz)):
            total += dz[n, o]
        db[o] = total


@numba.njit(fastmath={"contract", "arcp", "nsz"}, error_model="numpy")
def sigmoid(z, y):
    """y = 1 / (1 + exp(-z)), element by element; exp as 2^n times a polynomial, so no call.

    With -z = n ln 2 + r and |r| <= ln 2 / 2, exp(r) is its Taylor polynomial of degree 6, right to
    2e-7. Adding 1.5 * 2^23 + 127 rounds to a whole number and leaves n + 127 in the lowest bits;
    shifted by 23 they are the exponent of the float 2^n (Muller, *Elementary Functions*, 3rd ed.,
    section 11.1). No "reassoc" among the fastmath flags: it would cancel the constant.
    """
    one, log2e, ln2, shift = (
        np.float32(1),
        np.float32(1.44269504),
        np.float32(0.69314718),
        np.float32(12583039),
    )
    z, y = z.reshape(z.size), y.reshape(y.size)
    for m in numba.prange(z.size):
        t = min(max(-z[m], np.float32(-87)), np.float32(88))  # in this order, NaN stays NaN
        rounded = np.float32(t * log2e + shift)
        power = np.int32(rounded.view(np.int32) << np.int32(23)).view(np.float32)
        r = t - (rounded - shift) * ln2
        e = np.float32(1 / 120) + r * np.float32(1 / 720)
        e = np.float32(1 / 6) + r * (np.float32(1 / 24) + r * e)
        e = one + r * (one + r * (np.float32(1 / 2) + r * e))
        y[m] = one / (one + e * power)


@numba.njit(fastmath=True, error_model="numpy")
def sigmoid_backward(y, dy, dz):
    """dz = dy y (1 - y), element by element, for arrays of any equal shape."""
    one = np.float32(1)
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for m in numba.prange(y.size):
        dz[m] = dy[m] * y[m] * (one - y[m])


@numba.njit(error_model="numpy")
def relu(z, y):
    """y = max(z, 0), elementwise, for arrays of any shape."""
    z, y = z.reshape(z.size), y.reshape(y.size)
    for m in numba.prange(z.size):
        y[m] = np.float32(0) if z[m] <= 0 else z[m]  # no fastmath: NaN stays NaN


@numba.njit(error_model="numpy")
def relu_backward(y, dy, dz):
    """dz = 0 where y <= 0, else dy, elementwise, for arrays of any shape."""
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for m in numba.prange(y.size):
        dz[m] = np.float32(0) if y[m] <= 0 else dy[m]


@numba.njit(error_model="numpy")
def cross_entropy(y, labels, dz):
    """Binary cross-entropy: y (N,O), labels (N) → dz (N,O) = y - onehot; returns the loss.

    The loss is summed over batch and classes; a probability below 2**-24 counts as that. Each
    image's loss has its own place; they are added up in order, whatever the threads did.
    """
    one, losses, total = np.float32(1), np.zeros(len(y)), 0.0
    for n in numba.prange(len(y)):
        for o in range(y.shape[1]):
            hit = o == labels[n]
            dz[n, o] = y[n, o] - one if hit else y[n, o]
            losses[n] -= np.log(max(y[n, o] if hit else one - y[n, o], np.float32(2**-24)))
    for n in range(losses.size):
        total += losses[n]
    return total
