"""Sigmoid, ReLU and loss for `threads`: a task is a block of elements, or an image."""

import numba
import numpy as np


@numba.njit(parallel=True, fastmath={"contract", "arcp", "nsz"}, error_model="numpy")
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


@numba.njit(parallel=True, error_model="numpy")
def relu(z, y):
    """y = max(z, 0), elementwise, for arrays of any shape."""
    z, y = z.reshape(z.size), y.reshape(y.size)
    for m in numba.prange(z.size):
        y[m] = np.float32(0) if z[m] <= 0 else z[m]  # no fastmath: NaN stays NaN


@numba.njit(parallel=True, error_model="numpy")
def relu_backward(y, dy, dz):
    """dz = 0 where y <= 0, else dy, elementwise, for arrays of any shape."""
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for m in numba.prange(y.size):
        dz[m] = np.float32(0) if y[m] <= 0 else dy[m]


@numba.njit(parallel=True)
def cross_entropy(y, labels, dz):
    """Binary cross-entropy, an image a task: y (N,O), labels (N) → dz (N,O); returns the loss.

    Each image's loss has its own place; they are added up in order, whatever the threads did. A
    probability below 2**-24 counts as that.
    """
    losses = np.zeros(y.shape[0])
    for n in numba.prange(y.shape[0]):
        for o in range(y.shape[1]):
            hit = o == labels[n]
            dz[n, o] = y[n, o] - np.float32(1) if hit else y[n, o]
            losses[n] -= np.log(max(y[n, o] if hit else 1 - y[n, o], 2**-24))
    total = 0.0
    for n in range(losses.size):
        total += losses[n]
    return total
