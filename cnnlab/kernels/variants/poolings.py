"""Lesson 02: max and average pooling, to compare with the trainable pooling.

They have no weights, no bias and no sigmoid. `strategy` trains the report's network with one of
them in place of its pooling; as it computes another network, it is not one of KERNELS.
"""

from types import SimpleNamespace

import numba
import numpy as np

from cnnlab.kernels import vector
from cnnlab.kernels.contract import Strategy
from cnnlab.runtime.arguments import one_of


@numba.njit
def max_pool_forward(x, z, where, S):
    """Maximum of each S × S window: x (N,C,H,W) → z (N,C,P,Q), and its position in the window.

    `where` (N,C,P,Q) int64 is k*S + l for row k, column l.
    """
    N, C, P, Q = z.shape
    for n in range(N):
        for c in range(C):
            for p in range(P):
                for q in range(Q):
                    best = x[n, c, p * S, q * S]
                    where[n, c, p, q] = 0
                    for k in range(S):
                        for l in range(S):
                            if x[n, c, p * S + k, q * S + l] > best:
                                best = x[n, c, p * S + k, q * S + l]
                                where[n, c, p, q] = k * S + l
                    z[n, c, p, q] = best


@numba.njit
def max_pool_backward(dz, where, dx, S):
    """Gradient with respect to the input, all to the maximum: dz (N,C,P,Q) → dx (N,C,H,W)."""
    N, C, P, Q = dz.shape
    dx[:] = 0
    for n in range(N):
        for c in range(C):
            for p in range(P):
                for q in range(Q):
                    k, l = where[n, c, p, q] // S, where[n, c, p, q] % S
                    dx[n, c, p * S + k, q * S + l] = dz[n, c, p, q]


@numba.njit
def average_pool_forward(x, z, where, S):
    """Mean of each S × S window: x (N,C,H,W) → z (N,C,P,Q); `where` is not used."""
    N, C, P, Q = z.shape
    for n in range(N):
        for c in range(C):
            for p in range(P):
                for q in range(Q):
                    total = np.float32(0)
                    for k in range(S):
                        for l in range(S):
                            total += x[n, c, p * S + k, q * S + l]
                    z[n, c, p, q] = total / np.float32(S * S)


@numba.njit
def average_pool_backward(dz, where, dx, S):
    """Gradient with respect to the input, in equal shares: dz (N,C,P,Q) → dx (N,C,H,W)."""
    N, C, P, Q = dz.shape
    dx[:] = 0
    for n in range(N):
        for c in range(C):
            for p in range(P):
                for q in range(Q):
                    for k in range(S):
                        for l in range(S):
                            dx[n, c, p * S + k, q * S + l] = dz[n, c, p, q] / np.float32(S * S)


POOLINGS = {
    "max": (max_pool_forward, max_pool_backward),
    "average": (average_pool_forward, average_pool_backward),
}


def strategy(kind: str) -> Strategy:
    """`vector` for the network with "max" or "average" pooling; ValueError for any other."""
    one_of("kind", kind, POOLINGS)
    forward, backward = POOLINGS[kind]

    def pool_forward(x, w, b, z, stride=4):
        forward(x, z, np.empty(z.shape, np.int64), stride)
        with np.errstate(divide="ignore"):  # activations of 0 and 1 become infinite, and return
            z[:] = np.log(z / (1 - z))  # the inverse of the sigmoid that follows in the network

    def loss_and_gradients(params, images, labels, grads, chosen=None):
        chosen = slice(None) if chosen is None else chosen
        return step(forward, backward, params, images[chosen], labels[chosen], grads)

    own = {"pool_forward": pool_forward, "loss_and_gradients": loss_and_gradients}
    module = vars(vector) | own | {"sgd_steps": None}  # whose loops have trainable pooling
    return Strategy(
        f"{kind} pooling", f"{kind} pooling, else vector", module=SimpleNamespace(**module)
    )


def step(pool_forward, pool_backward, params, x, labels, grads):
    """Loss and gradients of a batch; those of the pooling's parameters are zero."""
    conv_w, conv_b, pool_w, _, dense_w, dense_b = params
    d_conv_w, d_conv_b, d_pool_w, d_pool_b, d_dense_w, d_dense_b = grads
    (n, _, height, width), (f, _, k, _), s = x.shape, conv_w.shape, pool_w.shape[1]
    conv = (n, f, height - k + 1, width - k + 1)
    pool = (n, f, conv[2] // s, conv[3] // s)
    z1, y1, d1 = np.empty((3, *conv), np.float32)
    y2, d2, where = *np.empty((2, *pool), np.float32), np.zeros(pool, np.int64)
    z3, y3 = np.empty((2, n, len(dense_b)), np.float32)

    vector.conv_forward(x, conv_w, conv_b, z1)
    vector.sigmoid(z1, y1)
    pool_forward(y1, y2, where, s)
    vector.dense_forward(y2.reshape(n, -1), dense_w, dense_b, z3)
    vector.sigmoid(z3, y3)
    loss = vector.cross_entropy(y3, labels, z3)
    vector.dense_backward_weights(y2.reshape(n, -1), z3, d_dense_w)
    vector.dense_backward_bias(z3, d_dense_b)
    vector.dense_backward_input(z3, dense_w, d2.reshape(n, -1))
    pool_backward(d2, where, d1, s)
    vector.sigmoid_backward(y1, d1, z1)
    vector.conv_backward_weights(x, z1, d_conv_w)
    vector.conv_backward_bias(z1, d_conv_b)
    d_pool_w[:], d_pool_b[:] = 0, 0
    return loss
