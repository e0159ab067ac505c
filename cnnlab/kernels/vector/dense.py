"""Fully connected layer, sigmoid and loss for `vector`: loops that become vector instructions.

Several outputs or images a pass, so that a number once loaded is used often. And arithmetic in
place of `exp`, since a loop with a call in it cannot become vectors.
"""

import numba
import numpy as np


@numba.njit(fastmath=True, error_model="numpy")
def dense_forward(x, w, b, z):
    """Fully connected layer: x (N,D), w (O,D), b (O) → z (N,O)."""
    O = w.shape[0]
    for n in range(z.shape[0]):
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
    dx[:] = np.float32(0)
    for n in range(dz.shape[0]):
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
    dw[:] = np.float32(0)
    for o in range(dw.shape[0]):
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
    db[:] = np.float32(0)
    for n in range(dz.shape[0]):
        for o in range(dz.shape[1]):
            db[o] += dz[n, o]
