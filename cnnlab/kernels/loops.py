"""The loops: what one writes first. Numba on one core, nested loops in the order of the formulas.

This is the base case of every speedup in the course. Letters: n image, c channel, f filter, p q
output row and column, k l kernel row and column, o i output and input of the fully connected layer.
"""

import numba
import numpy as np


@numba.njit
def conv_forward(x, w, b, z, stride=1):
    """Convolution: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    for n in range(z.shape[0]):
        for f in range(z.shape[1]):
            for p in range(z.shape[2]):
                for q in range(z.shape[3]):
                    total = b[f]
                    for c in range(w.shape[1]):
                        for k in range(w.shape[2]):
                            for l in range(w.shape[3]):
                                total += w[f, c, k, l] * x[n, c, p * stride + k, q * stride + l]
                    z[n, f, p, q] = total


@numba.njit
def conv_backward_input(dz, w, dx, stride=1):
    """Gradient with respect to the input: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    dx[:] = 0
    for n in range(dz.shape[0]):
        for f in range(dz.shape[1]):
            for p in range(dz.shape[2]):
                for q in range(dz.shape[3]):
                    for c in range(w.shape[1]):
                        for k in range(w.shape[2]):
                            for l in range(w.shape[3]):
                                dx[n, c, p * stride + k, q * stride + l] += (
                                    w[f, c, k, l] * dz[n, f, p, q]
                                )


@numba.njit
def conv_backward_weights(x, dz, dw, stride=1):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    dw[:] = 0
    for n in range(dz.shape[0]):
        for f in range(dw.shape[0]):
            for c in range(dw.shape[1]):
                for k in range(dw.shape[2]):
                    for l in range(dw.shape[3]):
                        total = dw[f, c, k, l]
                        for p in range(dz.shape[2]):
                            for q in range(dz.shape[3]):
                                total += dz[n, f, p, q] * x[n, c, p * stride + k, q * stride + l]
                        dw[f, c, k, l] = total


@numba.njit
def conv_backward_bias(dz, db):
    """Gradient with respect to the bias: dz (N,F,P,Q) → db (F)."""
    db[:] = 0
    for n in range(dz.shape[0]):
        for f in range(dz.shape[1]):
            for p in range(dz.shape[2]):
                for q in range(dz.shape[3]):
                    db[f] += dz[n, f, p, q]


@numba.njit
def pool_forward(x, w, b, z, stride=4):
    """Trainable pooling: x (N,C,H,W), w (C,K,K), b (C) → z (N,C,P,Q)."""
    for n in range(z.shape[0]):
        for c in range(z.shape[1]):
            for p in range(z.shape[2]):
                for q in range(z.shape[3]):
                    total = b[c]
                    for k in range(w.shape[1]):
                        for l in range(w.shape[2]):
                            total += w[c, k, l] * x[n, c, p * stride + k, q * stride + l]
                    z[n, c, p, q] = total


@numba.njit
def pool_backward_input(dz, w, dx, stride=4):
    """Gradient with respect to the input: dz (N,C,P,Q), w (C,K,K) → dx (N,C,H,W)."""
    dx[:] = 0
    for n in range(dz.shape[0]):
        for c in range(dz.shape[1]):
            for p in range(dz.shape[2]):
                for q in range(dz.shape[3]):
                    for k in range(w.shape[1]):
                        for l in range(w.shape[2]):
                            dx[n, c, p * stride + k, q * stride + l] += w[c, k, l] * dz[n, c, p, q]


@numba.njit
def pool_backward_weights(x, dz, dw, stride=4):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,C,P,Q) → dw (C,K,K)."""
    dw[:] = 0
    for n in range(dz.shape[0]):
        for c in range(dz.shape[1]):
            for p in range(dz.shape[2]):
                for q in range(dz.shape[3]):
                    for k in range(dw.shape[1]):
                        for l in range(dw.shape[2]):
                            dw[c, k, l] += dz[n, c, p, q] * x[n, c, p * stride + k, q * stride + l]


@numba.njit
def pool_backward_bias(dz, db):
    """Gradient with respect to the bias: dz (N,C,P,Q) → db (C)."""
    db[:] = 0
    for n in range(dz.shape[0]):
        for c in range(dz.shape[1]):
            for p in range(dz.shape[2]):
                for q in range(dz.shape[3]):
                    db[c] += dz[n, c, p, q]


@numba.njit
def max_pool_forward(x, z, stride=4):
    """Max pooling, windows of stride × stride: x (N,C,H,W) → z (N,C,P,Q)."""
    for n in range(z.shape[0]):
        for c in range(z.shape[1]):
            for p in range(z.shape[2]):
                for q in range(z.shape[3]):
                    best = x[n, c, p * stride, q * stride]
                    for k in range(stride):
                        for l in range(stride):
                            value = x[n, c, p * stride + k, q * stride + l]
                            if value > best or np.isnan(value):
                                best = value
                    z[n, c, p, q] = best


@numba.njit
def max_pool_backward(x, dz, dx, stride=4):
    """Max pooling backward: x (N,C,H,W), dz (N,C,P,Q) → dx (N,C,H,W).

    Each dz goes to the largest element of its window, the first of equals; NaN counts as largest.
    """
    dx[:] = 0
    for n in range(dz.shape[0]):
        for c in range(dz.shape[1]):
            for p in range(dz.shape[2]):
                for q in range(dz.shape[3]):
                    row, column = p * stride, q * stride  # of the winner so far
                    for i in range(p * stride, (p + 1) * stride):
                        for j in range(q * stride, (q + 1) * stride):
                            best = x[n, c, row, column]
                            if not (x[n, c, i, j] <= best or np.isnan(best)):
                                row, column = i, j
                    dx[n, c, row, column] = dz[n, c, p, q]


@numba.njit
def dense_forward(x, w, b, z):
    """Fully connected layer: x (N,D), w (O,D), b (O) → z (N,O)."""
    for n in range(z.shape[0]):
        for o in range(z.shape[1]):
            total = b[o]
            for i in range(x.shape[1]):
                total += w[o, i] * x[n, i]
            z[n, o] = total


@numba.njit
def dense_backward_input(dz, w, dx):
    """Gradient with respect to the input: dz (N,O), w (O,D) → dx (N,D)."""
    for n in range(dx.shape[0]):
        for i in range(dx.shape[1]):
            total = np.float32(0)
            for o in range(dz.shape[1]):
                total += w[o, i] * dz[n, o]
            dx[n, i] = total


@numba.njit
def dense_backward_weights(x, dz, dw):
    """Gradient with respect to the weights: x (N,D), dz (N,O) → dw (O,D)."""
    dw[:] = 0
    for n in range(dz.shape[0]):
        for o in range(dw.shape[0]):
            for i in range(dw.shape[1]):
                dw[o, i] += dz[n, o] * x[n, i]


@numba.njit
def dense_backward_bias(dz, db):
    """Gradient with respect to the bias: dz (N,O) → db (O)."""
    db[:] = 0
    for n in range(dz.shape[0]):
        for o in range(dz.shape[1]):
            db[o] += dz[n, o]


@numba.njit
def sigmoid(z, y):
    """y = 1 / (1 + exp(-z)), elementwise, for arrays of any shape."""
    one = np.float32(1)  # a plain 1 makes Numba compute in float64
    z, y = z.reshape(z.size), y.reshape(y.size)
    for m in range(z.size):
        y[m] = one / (one + np.exp(-z[m]))


@numba.njit
def sigmoid_backward(y, dy, dz):
    """dz = dy y (1 - y), elementwise, for arrays of any shape."""
    one = np.float32(1)
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for m in range(y.size):
        dz[m] = dy[m] * y[m] * (one - y[m])


@numba.njit
def relu(z, y):
    """y = max(z, 0), elementwise, for arrays of any shape."""
    z, y = z.reshape(z.size), y.reshape(y.size)
    for m in range(z.size):
        y[m] = np.float32(0) if z[m] <= 0 else z[m]  # NaN stays NaN


@numba.njit
def relu_backward(y, dy, dz):
    """dz = 0 where y <= 0, else dy, elementwise, for arrays of any shape."""
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for m in range(y.size):
        dz[m] = np.float32(0) if y[m] <= 0 else dy[m]


@numba.njit
def cross_entropy(y, labels, dz):
    """Binary cross-entropy: y (N,O), labels (N) → dz (N,O) = y - onehot; returns the loss.

    The loss is summed over batch and classes. A probability below 2**-24 counts as that.
    """
    loss = 0.0
    for n in range(y.shape[0]):
        for o in range(y.shape[1]):
            if o == labels[n]:
                loss -= np.log(max(y[n, o], 2**-24))
                dz[n, o] = y[n, o] - 1
            else:
                loss -= np.log(max(1 - y[n, o], 2**-24))
                dz[n, o] = y[n, o]
    return loss
