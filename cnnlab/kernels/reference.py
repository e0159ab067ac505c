"""The reference: NumPy in float64, obviously right. Every other strategy is checked against it.

`sliding_window_view` gives the windows of a kernel, and `einsum` writes each sum in one line, with
the indices of the contract: n image, c channel, f filter, p q of the output, k l of the kernel.
"""

import numpy as np


def conv_forward(x, w, b, z, stride=1):
    """z[n,f,p,q] = b[f] + sum over c,k,l of w[f,c,k,l] x[n,c,p*stride+k,q*stride+l]."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    z[:] = np.einsum("ncpqkl,fckl->nfpq", windows[:, :, ::stride, ::stride], w)
    z += b[:, None, None]


def conv_backward_input(dz, w, dx, stride=1):
    """Gradient with respect to the input: each output passes its gradient back to its window."""
    rows, columns = stride * (dz.shape[2] - 1) + 1, stride * (dz.shape[3] - 1) + 1
    dx[:] = 0
    for k in range(w.shape[2]):
        for l in range(w.shape[3]):
            window = dx[:, :, k : k + rows : stride, l : l + columns : stride]
            window += np.einsum("nfpq,fc->ncpq", dz, w[:, :, k, l])


def conv_backward_weights(x, dz, dw, stride=1):
    """Gradient with respect to the weights, summed over the batch."""
    windows = np.lib.stride_tricks.sliding_window_view(x, dw.shape[2:], axis=(2, 3))
    dw[:] = np.einsum("ncpqkl,nfpq->fckl", windows[:, :, ::stride, ::stride], dz)


def conv_backward_bias(dz, db):
    """Gradient with respect to the bias: dz summed over images, rows and columns."""
    db[:] = dz.sum(axis=(0, 2, 3))


def pool_forward(x, w, b, z, stride=4):
    """One kernel per map: z[n,c,p,q] = b[c] + sum over k,l of w[c,k,l] x[n,c,p*stride+k,…]."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[1:], axis=(2, 3))
    z[:] = np.einsum("ncpqkl,ckl->ncpq", windows[:, :, ::stride, ::stride], w)
    z += b[:, None, None]


def pool_backward_input(dz, w, dx, stride=4):
    """Gradient with respect to the input; zero where no window reads it."""
    rows, columns = stride * (dz.shape[2] - 1) + 1, stride * (dz.shape[3] - 1) + 1
    dx[:] = 0
    for k in range(w.shape[1]):
        for l in range(w.shape[2]):
            window = dx[:, :, k : k + rows : stride, l : l + columns : stride]
            window += dz * w[:, k, l, None, None]


def pool_backward_weights(x, dz, dw, stride=4):
    """Gradient with respect to the weights, summed over the batch."""
    windows = np.lib.stride_tricks.sliding_window_view(x, dw.shape[1:], axis=(2, 3))
    dw[:] = np.einsum("ncpqkl,ncpq->ckl", windows[:, :, ::stride, ::stride], dz)


def pool_backward_bias(dz, db):
    """Gradient with respect to the bias: dz summed over images, rows and columns."""
    db[:] = dz.sum(axis=(0, 2, 3))


def max_pool_forward(x, z, stride=4):
    """The largest element of each window of stride × stride, or NaN if one of them is NaN."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (stride, stride), axis=(2, 3))
    z[:] = windows[:, :, ::stride, ::stride].max(axis=(4, 5))


def max_pool_backward(x, dz, dx, stride=4):
    """Gradient with respect to the input: dz for the largest element of a window, 0 for the others.

    Of equals, the first is the largest; NaN is larger than any number.
    """
    windows = np.lib.stride_tricks.sliding_window_view(x, (stride, stride), axis=(2, 3))
    winners = windows[:, :, ::stride, ::stride].reshape(*dz.shape, stride**2).argmax(-1)
    n, c, p, q = np.indices(dz.shape)
    dx[:] = 0
    dx[n, c, p * stride + winners // stride, q * stride + winners % stride] = dz


def dense_forward(x, w, b, z):
    """Fully connected layer: z = x wᵀ + b."""
    z[:] = x @ w.T + b


def dense_backward_input(dz, w, dx):
    """Gradient with respect to the input: dx = dz w."""
    dx[:] = dz @ w


def dense_backward_weights(x, dz, dw):
    """Gradient with respect to the weights, summed over the batch: dw = dzᵀ x."""
    dw[:] = dz.T @ x


def dense_backward_bias(dz, db):
    """Gradient with respect to the bias: dz summed over the batch."""
    db[:] = dz.sum(axis=0)


def sigmoid(z, y):
    """y = 1 / (1 + exp(-z)), in a form that cannot overflow."""
    y[:] = np.exp(-np.logaddexp(0, -z))


def sigmoid_backward(y, dy, dz):
    """dz = dy y (1 - y)."""
    dz[:] = dy * y * (1 - y)


def relu(z, y):
    """y = max(z, 0)."""
    y[:] = np.maximum(z, 0)


def relu_backward(y, dy, dz):
    """dz = 0 where y <= 0, else dy: a gradient passes where y is NaN."""
    dz[:] = np.where(y <= 0, 0, dy)


def cross_entropy(y, labels, dz):
    """Binary cross-entropy of sigmoids y and one-hot labels; returns the loss.

    Writes the gradient with respect to the preactivation, y - onehot, to dz. The loss is summed
    over batch and classes. A probability below 2**-24 counts as that: 16.6, not infinity.
    """
    onehot = np.arange(y.shape[1]) == labels[:, None]
    dz[:] = y - onehot
    return -np.log(np.maximum(np.where(onehot, y, 1 - y), 2**-24)).sum()
