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
    """Gradient at the layer's input: dz (N,O), w (O,D) → dx (N,D)."""
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
    """Gradient at the layer's weights: x (N,D), dz (N,O) → dw (O,D)."""
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
    """Gradient at the layer's bias: dz (N,O) → db (O)."""
    db[:] = np.float32(0)
    for n in range(dz.shape[0]):
        for o in range(dz.shape[1]):
            db[o] += dz[n, o]


@numba.njit(fastmath={"contract", "arcp", "nnan", "nsz"}, error_model="numpy")
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
    """Binary cross-entropy: y (N,O), labels (N) → dz (N,O) = y - onehot; returns the loss.

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
