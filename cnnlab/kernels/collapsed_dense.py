"""Fully connected layer, sigmoid and loss for `threads`: a task is an image, a row or a block."""

import numba
import numpy as np


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def dense_forward(x, w, b, z):
    """Fully connected layer, an image a task: x (N,D), w (O,D), b (O) → z (N,O)."""
    for n in numba.prange(z.shape[0]):
        for o in range(z.shape[1]):
            total = b[o]
            for i in range(x.shape[1]):
                total += w[o, i] * x[n, i]
            z[n, o] = total


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def dense_backward_input(dz, w, dx):
    """Gradient at the input, an image a task: dz (N,O), w (O,D) → dx (N,D)."""
    for n in numba.prange(dx.shape[0]):
        out = dx[n]
        out[:] = np.float32(0)
        for o in range(dz.shape[1]):
            row, d = w[o], dz[n, o]
            for i in range(out.size):
                out[i] += d * row[i]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def dense_backward_weights(x, dz, dw):
    """Gradient at the weights, an output a task: x (N,D), dz (N,O) → dw (O,D)."""
    for o in numba.prange(dw.shape[0]):
        out = dw[o]
        out[:] = np.float32(0)
        for n in range(dz.shape[0]):
            row, d = x[n], dz[n, o]
            for i in range(out.size):
                out[i] += d * row[i]


@numba.njit(parallel=True)
def dense_backward_bias(dz, db):
    """Gradient at the bias, an output a task: dz (N,O) → db (O)."""
    for o in numba.prange(dz.shape[1]):
        total = np.float32(0)
        for n in range(dz.shape[0]):
            total += dz[n, o]
        db[o] = total


@numba.njit(parallel=True, fastmath={"contract", "arcp", "nnan", "nsz"}, error_model="numpy")
def sigmoid(z, y):
    """y = 1 / (1 + exp(-z)), a block of 4096 elements a task; exp as in `vector.sigmoid`."""
    one, log2e, ln2 = np.float32(1), np.float32(1.44269504), np.float32(0.69314718)
    shift = np.float32(12583039)
    z, y = z.reshape(z.size), y.reshape(y.size)
    for block in numba.prange((z.size + 4095) // 4096):
        zb, yb = z[block * 4096 : block * 4096 + 4096], y[block * 4096 : block * 4096 + 4096]
        for m in range(zb.size):
            t = min(max(-zb[m], np.float32(-87)), np.float32(88))
            rounded = np.float32(t * log2e + shift)
            power = np.int32(rounded.view(np.int32) << np.int32(23)).view(np.float32)
            r = t - (rounded - shift) * ln2
            e = np.float32(1 / 120) + r * np.float32(1 / 720)
            e = np.float32(1 / 6) + r * (np.float32(1 / 24) + r * e)
            e = one + r * (one + r * (np.float32(1 / 2) + r * e))
            yb[m] = one / (one + e * power)


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def sigmoid_backward(y, dy, dz):
    """dz = dy y (1 - y), element by element, for arrays of any equal shape."""
    one = np.float32(1)
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for m in numba.prange(y.size):
        dz[m] = dy[m] * y[m] * (one - y[m])


@numba.njit(parallel=True)
def cross_entropy(y, labels, dz):
    """Binary cross-entropy, an image a task: y (N,O), labels (N) → dz (N,O); returns the loss.

    Each image's loss has its own place; they are added up in order, whatever the threads did.
    """
    losses = np.zeros(y.shape[0])
    for n in numba.prange(y.shape[0]):
        for o in range(y.shape[1]):
            hit = o == labels[n]
            dz[n, o] = y[n, o] - np.float32(1) if hit else y[n, o]
            losses[n] -= np.log(max(y[n, o] if hit else 1 - y[n, o], 1e-30))
    total = 0.0
    for n in range(losses.size):
        total += losses[n]
    return total
