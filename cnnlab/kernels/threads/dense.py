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
    """Gradient with respect to the input, an image a task: dz (N,O), w (O,D) → dx (N,D)."""
    for n in numba.prange(dx.shape[0]):
        out = dx[n]
        out[:] = np.float32(0)
        for o in range(dz.shape[1]):
            row, d = w[o], dz[n, o]
            for i in range(out.size):
                out[i] += d * row[i]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def dense_backward_weights(x, dz, dw):
    """Gradient with respect to the weights, an output a task: x (N,D), dz (N,O) → dw (O,D)."""
    for o in numba.prange(dw.shape[0]):
        out = dw[o]
        out[:] = np.float32(0)
        for n in range(dz.shape[0]):
            row, d = x[n], dz[n, o]
            for i in range(out.size):
                out[i] += d * row[i]


@numba.njit(parallel=True)
def dense_backward_bias(dz, db):
    """Gradient with respect to the bias, an output a task: dz (N,O) → db (O)."""
    for o in numba.prange(dz.shape[1]):
        total = np.float32(0)
        for n in range(dz.shape[0]):
            total += dz[n, o]
        db[o] = total
