"""Sigmoid, ReLU and loss for `vector`.

The sigmoid has arithmetic in place of `exp`, because a loop that calls a function cannot become
vector instructions.
"""

import numba
import numpy as np


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
    for m in range(z.size):
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
    for m in range(y.size):
        dz[m] = dy[m] * y[m] * (one - y[m])


@numba.njit(error_model="numpy")
def relu(z, y):
    """y = max(z, 0), elementwise, for arrays of any shape."""
    z, y = z.reshape(z.size), y.reshape(y.size)
    for m in range(z.size):
        y[m] = np.float32(0) if z[m] <= 0 else z[m]  # no fastmath: NaN stays NaN


@numba.njit(error_model="numpy")
def relu_backward(y, dy, dz):
    """dz = 0 where y <= 0, else dy, elementwise, for arrays of any shape."""
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for m in range(y.size):
        dz[m] = np.float32(0) if y[m] <= 0 else dy[m]


@numba.njit(error_model="numpy")
def cross_entropy(y, labels, dz):
    """Binary cross-entropy: y (N,O), labels (N) → dz (N,O) = y - onehot; returns the loss.

    The loss is summed over batch and classes; a probability below 2**-24 counts as that.
    """
    one = np.float32(1)
    loss = 0.0
    for n in range(y.shape[0]):
        for o in range(y.shape[1]):
            hit = o == labels[n]
            dz[n, o] = y[n, o] - one if hit else y[n, o]
            loss -= np.log(max(y[n, o] if hit else one - y[n, o], np.float32(2**-24)))
    return loss
