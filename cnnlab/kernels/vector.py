"""One core used well: the contract with loops that the compiler turns into vector instructions.

Three ideas carry this file. A long innermost loop over neighbouring numbers, so that one instruction works on 8
or 16 of them: an image is taken as one flat row, in which the output at (p, q) lies at p*W + q like the input.
Several taps a pass, so that a number once loaded is used often. And arithmetic in place of `exp`, since a call
cannot be vectorized. Training in batches goes further, see `batch_innermost`.
"""

import numba
import numpy as np

from cnnlab.kernels import batch_innermost as lanes


@numba.njit(fastmath=True, error_model="numpy")
def conv_forward(x, w, b, z, stride=1):
    """Convolution: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K, W = w.shape[1], w.shape[2], x.shape[3]
    row = np.empty(((P - 1) * W + Q - 1) * stride + 1, x.dtype)
    for n in range(N):
        for f in range(F):
            row[:] = b[f]
            for c in range(C):
                flat = x[n, c].reshape(-1)
                for k in range(K):
                    for l in range(0, K - 4, 5):  # five taps a pass ...
                        tap = flat[k * W + l :]
                        w0, w1, w2, w3, w4 = (
                            w[f, c, k, l],
                            w[f, c, k, l + 1],
                            w[f, c, k, l + 2],
                            w[f, c, k, l + 3],
                            w[f, c, k, l + 4],
                        )
                        for m in range(row.size):
                            row[m] += (
                                w0 * tap[m]
                                + w1 * tap[m + 1]
                                + w2 * tap[m + 2]
                                + w3 * tap[m + 3]
                                + w4 * tap[m + 4]
                            )
                    for l in range(K - K % 5, K):  # ... and those left over, one by one
                        tap, w0 = flat[k * W + l :], w[f, c, k, l]
                        for m in range(row.size):
                            row[m] += w0 * tap[m]
            for p in range(P):
                for q in range(Q):
                    z[n, f, p, q] = row[(p * W + q) * stride]


@numba.njit(fastmath=True, error_model="numpy")
def conv_backward_input(dz, w, dx, stride=1):
    """Gradient at the convolution's input: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    N, F, P, Q = dz.shape
    C, K, W = w.shape[1], w.shape[2], dx.shape[3]
    row = np.zeros(((P - 1) * W + Q - 1) * stride + 1, dz.dtype)
    dx[:] = np.float32(0)
    for n in range(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    row[(p * W + q) * stride] = dz[n, f, p, q]
            for c in range(C):
                flat = dx[n, c].reshape(-1)
                for k in range(K):
                    for l in range(K):
                        tap, w0 = flat[k * W + l :], w[f, c, k, l]
                        for m in range(row.size):
                            tap[m] += w0 * row[m]


@numba.njit(fastmath=True, error_model="numpy")
def conv_backward_weights(x, dz, dw, stride=1):
    """Gradient at the convolution's weights: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    N, F, P, Q = dz.shape
    C, K, W = dw.shape[1], dw.shape[2], x.shape[3]
    row = np.zeros(((P - 1) * W + Q - 1) * stride + 1, dz.dtype)
    dw[:] = np.float32(0)
    for n in range(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    row[(p * W + q) * stride] = dz[n, f, p, q]
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
                        dw[f, c, k, l] += s0
                        dw[f, c, k, l + 1] += s1
                        dw[f, c, k, l + 2] += s2
                        dw[f, c, k, l + 3] += s3
                        dw[f, c, k, l + 4] += s4
                    for l in range(K - K % 5, K):
                        tap = flat[k * W + l :]
                        s0 = np.float32(0)
                        for m in range(row.size):
                            s0 += row[m] * tap[m]
                        dw[f, c, k, l] += s0


@numba.njit(fastmath=True, error_model="numpy")
def conv_backward_bias(dz, db):
    """Gradient at the convolution's bias: dz (N,F,P,Q) → db (F)."""
    db[:] = np.float32(0)
    for n in range(dz.shape[0]):
        for f in range(dz.shape[1]):
            flat = dz[n, f].reshape(-1)
            total = np.float32(0)
            for m in range(flat.size):
                total += flat[m]
            db[f] += total


@numba.njit(fastmath=True, error_model="numpy")
def pool_forward(x, w, b, z, stride=4):
    """Trainable pooling: x (N,C,H,W), w (C,K,K), b (C) → z (N,C,P,Q)."""
    N, C, P, Q = z.shape
    K = w.shape[1]
    for n in range(N):
        for c in range(C):
            for p in range(P):
                out = z[n, c, p]
                out[:] = b[c]
                for k in range(K):
                    row = x[n, c, p * stride + k]
                    for l in range(K):
                        w0 = w[c, k, l]
                        for q in range(Q):
                            out[q] += w0 * row[q * stride + l]


@numba.njit(fastmath=True, error_model="numpy")
def pool_backward_input(dz, w, dx, stride=4):
    """Gradient at the pooling's input: dz (N,C,P,Q), w (C,K,K) → dx (N,C,H,W)."""
    N, C, P, Q = dz.shape
    K = w.shape[1]
    dx[:] = np.float32(0)
    for n in range(N):
        for c in range(C):
            for p in range(P):
                for k in range(K):
                    row = dx[n, c, p * stride + k]
                    for l in range(K):
                        w0 = w[c, k, l]
                        for q in range(Q):
                            row[q * stride + l] += w0 * dz[n, c, p, q]


@numba.njit(fastmath=True, error_model="numpy")
def pool_backward_weights(x, dz, dw, stride=4):
    """Gradient at the pooling's weights: x (N,C,H,W), dz (N,C,P,Q) → dw (C,K,K)."""
    N, C, P, Q = dz.shape
    K = dw.shape[1]
    dw[:] = np.float32(0)
    for n in range(N):
        for c in range(C):
            for p in range(P):
                for k in range(K):
                    row = x[n, c, p * stride + k]
                    for l in range(K):
                        total = np.float32(0)
                        for q in range(Q):
                            total += dz[n, c, p, q] * row[q * stride + l]
                        dw[c, k, l] += total


@numba.njit(fastmath=True, error_model="numpy")
def pool_backward_bias(dz, db):
    """Gradient at the pooling's bias: dz (N,C,P,Q) → db (C)."""
    db[:] = np.float32(0)
    for n in range(dz.shape[0]):
        for c in range(dz.shape[1]):
            flat = dz[n, c].reshape(-1)
            total = np.float32(0)
            for m in range(flat.size):
                total += flat[m]
            db[c] += total


@numba.njit(fastmath=True, error_model="numpy")
def dense_forward(x, w, b, z):
    """Fully connected layer: x (N,D), w (O,D), b (O) → z (N,O)."""
    for n in range(z.shape[0]):
        for o in range(z.shape[1]):
            total = b[o]
            for i in range(x.shape[1]):
                total += w[o, i] * x[n, i]
            z[n, o] = total


@numba.njit(fastmath=True, error_model="numpy")
def dense_backward_input(dz, w, dx):
    """Gradient at the layer's input: dz (N,O), w (O,D) → dx (N,D)."""
    dx[:] = np.float32(0)
    for n in range(dz.shape[0]):
        out = dx[n]
        for o in range(dz.shape[1]):
            row, d = w[o], dz[n, o]
            for i in range(out.size):
                out[i] += d * row[i]


@numba.njit(fastmath=True, error_model="numpy")
def dense_backward_weights(x, dz, dw):
    """Gradient at the layer's weights: x (N,D), dz (N,O) → dw (O,D)."""
    dw[:] = np.float32(0)
    for n in range(dz.shape[0]):
        row = x[n]
        for o in range(dz.shape[1]):
            out, d = dw[o], dz[n, o]
            for i in range(out.size):
                out[i] += d * row[i]


@numba.njit(fastmath=True, error_model="numpy")
def dense_backward_bias(dz, db):
    """Gradient at the layer's bias: dz (N,O) → db (O)."""
    db[:] = np.float32(0)
    for n in range(dz.shape[0]):
        for o in range(dz.shape[1]):
            db[o] += dz[n, o]


@numba.njit(fastmath={"contract", "arcp", "nnan", "nsz"}, error_model="numpy")
def sigmoid(z, y):
    """y = 1 / (1 + exp(-z)), element by element; exp as 2^n times a polynomial, so that it vectorizes.

    With -z = n ln 2 + r and |r| <= ln 2 / 2, exp(r) is its Taylor polynomial of degree 6 (relative error 2e-7).
    Adding 1.5 * 2^23 + 127 rounds to a whole number and leaves n + 127 in the lowest bits; shifted by 23 they are
    the exponent of the float 2^n (Muller, *Elementary Functions*, 3rd ed., section 11.1). No "reassoc" among the
    fastmath flags: it would cancel the constant.
    """
    one, log2e, ln2, shift = (
        np.float32(1),
        np.float32(1.44269504),
        np.float32(0.69314718),
        np.float32(12583039),
    )
    z, y = z.reshape(z.size), y.reshape(y.size)
    for m in range(z.size):
        t = min(max(-z[m], np.float32(-87)), np.float32(88))
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
    for m in range(y.size):
        dz[m] = dy[m] * y[m] * (one - y[m])


@numba.njit(fastmath=True, error_model="numpy")
def cross_entropy(y, labels, dz):
    """Binary cross-entropy against the one-hot labels: y (N,O), labels (N) → dz = y - onehot; returns the loss.

    The loss is summed over batch and classes; a probability of 0 counts as 1e-30.
    """
    one = np.float32(1)
    loss = 0.0
    for n in range(y.shape[0]):
        for o in range(y.shape[1]):
            hit = o == labels[n]
            dz[n, o] = y[n, o] - one if hit else y[n, o]
            loss -= np.log(max(y[n, o] if hit else one - y[n, o], np.float32(1e-30)))
    return loss


def loss_and_gradients(params, x, labels, grads):
    """Loss of a batch x (N,C,H,W) with labels (N) and its gradients, summed over the batch.

    `params` and `grads` hold (conv_w, conv_b, pool_w, pool_b, dense_w, dense_b). A few images go through the
    functions above; more of them go sixteen at a time through those of `batch_innermost`.
    """
    step = few_images if len(x) < 8 else many_images
    return step(*params, x, labels, *grads)


@numba.njit
def few_images(cw, cb, pw, pb, dw, db, x, labels, d_cw, d_cb, d_pw, d_pb, d_dw, d_db):
    """Loss and gradients by the functions of the contract, without a way back to Python between them."""
    N, F, K, S = x.shape[0], cw.shape[0], cw.shape[2], pw.shape[1]
    conv = (N, F, x.shape[2] - K + 1, x.shape[3] - K + 1)
    pool = (N, F, conv[2] // S, conv[3] // S)
    y1, y2, y3 = (
        np.empty(conv, np.float32),
        np.empty(pool, np.float32),
        np.empty((N, db.size), np.float32),
    )
    z1, z2, z3 = np.empty_like(y1), np.empty_like(y2), np.empty_like(y3)
    d1, d2, flat = np.empty_like(y1), np.empty_like(y2), (N, dw.shape[1])

    conv_forward(x, cw, cb, z1)
    sigmoid(z1, y1)
    pool_forward(y1, pw, pb, z2, S)
    sigmoid(z2, y2)
    dense_forward(y2.reshape(flat), dw, db, z3)
    sigmoid(z3, y3)
    loss = cross_entropy(y3, labels, z3)  # from here on the z hold gradients at the preactivations
    dense_backward_weights(y2.reshape(flat), z3, d_dw)
    dense_backward_bias(z3, d_db)
    dense_backward_input(z3, dw, d2.reshape(flat))
    sigmoid_backward(y2, d2, z2)
    pool_backward_weights(y1, z2, d_pw, S)
    pool_backward_bias(z2, d_pb)
    pool_backward_input(z2, pw, d1, S)
    sigmoid_backward(y1, d1, z1)
    conv_backward_weights(x, z1, d_cw)
    conv_backward_bias(z1, d_cb)
    return loss


@numba.njit
def many_images(cw, cb, pw, pb, dw, db, x, labels, d_cw, d_cb, d_pw, d_pb, d_dw, d_db):
    """Loss and gradients sixteen images at a time, side by side in the lanes of the vectors.

    Between `from_lanes` and `to_lanes`, in the fully connected layer, each image is a row of numbers again.
    """
    (N, C, H, W), (F, _, K, _), S, B = x.shape, cw.shape, pw.shape[1], lanes.LANES
    P, Q, D, O = H - K + 1, W - K + 1, dw.shape[1], db.size
    image = lanes.zeros(C * H * W * B).reshape(C, H, W * B)
    z1, y1 = (
        lanes.zeros(F * Q * B).reshape(F, Q * B),
        lanes.zeros(P * F * Q * B).reshape(P, F, Q * B),
    )
    rows, d_rows = (
        lanes.zeros(F * S * Q * B).reshape(F, S, Q * B),
        lanes.zeros(F * S * Q * B).reshape(F, S, Q * B),
    )
    d1, hidden = (
        lanes.zeros(F * S * W * B).reshape(F, S, W * B),
        lanes.zeros(D * B).reshape(F, P // S, Q // S * B),
    )
    z2, y2, d2 = (
        np.empty((B, D), np.float32),
        np.empty((B, D), np.float32),
        np.empty((B, D), np.float32),
    )
    z3, y3 = np.empty((B, O), np.float32), np.empty((B, O), np.float32)
    part_pb, part_dw, part_db = np.empty_like(pb), np.empty_like(dw), np.empty_like(db)
    d_cw[:], d_cb[:], d_pb[:] = np.float32(0), np.float32(0), np.float32(0)
    d_dw[:], d_db[:] = np.float32(0), np.float32(0)
    loss = 0.0
    lanes.pool_weights_to_rows(pw, rows)
    for first in range(0, N, B):
        block, label = x[first : first + B].reshape(-1, C * H * W), labels[first : first + B]
        n = label.size
        lanes.to_lanes(block, image.reshape(C * H * W, B))
        for p in range(P):
            lanes.conv_row_forward(image, cw, cb, p, z1)
            sigmoid(z1, y1[p])
        for p in range(P // S):
            lanes.pool_row_forward(y1, rows, pb, p, hidden)
        lanes.from_lanes(hidden.reshape(D, B), z2[:n])
        sigmoid(z2, y2)
        dense_forward(y2[:n], dw, db, z3[:n])
        sigmoid(z3, y3)
        loss += cross_entropy(y3[:n], label, z3[:n])
        dense_backward_weights(y2[:n], z3[:n], part_dw)
        dense_backward_bias(z3[:n], part_db)
        dense_backward_input(z3[:n], dw, d2[:n])
        sigmoid_backward(y2, d2, z2)
        pool_backward_bias(z2[:n].reshape(n, F, P // S, Q // S), part_pb)
        d_dw += part_dw
        d_db += part_db
        d_pb += part_pb
        lanes.to_lanes(z2[:n], hidden.reshape(D, B))
        for p in range(P // S):
            lanes.pool_row_backward(y1, rows, hidden, p, d_rows, d1)
            lanes.conv_band_backward(image, d1, p * S, d_cw, d_cb)
    lanes.pool_weights_from_rows(d_rows, d_pw)
    return loss
