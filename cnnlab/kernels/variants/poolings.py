"""Max and average pooling in place of the trainable one, to compare with.

They have no weights, no bias and no sigmoid after them. `strategy` makes the whole network of it,
with everything else as in `vector`; these strategies compute another network, so they are not among
KERNELS.
"""

from types import SimpleNamespace

import numba
import numpy as np

from cnnlab.kernels import vector
from cnnlab.kernels.contract import Strategy


@numba.njit
def max_pool_forward(x, z, where, S):
    """Maximum of each window: x (N,C,H,W) → z (N,C,P,Q); `where` (N,C,P,Q) int64 keeps its place.

    Windows are S × S and S apart; place k*S + l is row k, column l of the window.
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
    """Gradient at the input: each dz (N,C,P,Q) goes to the winner of its window in dx (N,C,H,W)."""
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
    """Mean of each window: x (N,C,H,W) → z (N,C,P,Q); `where` stays as it is."""
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
    """Gradient at the input: each dz (N,C,P,Q) in equal shares to its window in dx (N,C,H,W)."""
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
    """The network with "max" or "average" pooling, ready for `training.train`."""
    if kind not in POOLINGS:
        raise ValueError(f"kind should be one of {', '.join(POOLINGS)}, got {kind!r}")
    forward, backward = POOLINGS[kind]

    def pool_forward(x, w, b, z, stride=4):
        forward(x, z, np.empty(z.shape, np.int64), stride)
        with np.errstate(divide="ignore"):  # an activation of 0 or 1 becomes an infinity, and back
            z[:] = np.log(z / (1 - z))  # undone by the sigmoid that the network puts after it

    def loss_and_gradients(params, x, labels, grads):
        return step(forward, backward, params, x, labels, grads)

    module = vars(vector) | {"pool_forward": pool_forward, "loss_and_gradients": loss_and_gradients}
    return Strategy(
        f"{kind} pooling", f"{kind} pooling, else vector", module=SimpleNamespace(**module)
    )


def step(pool_forward, pool_backward, params, x, labels, grads):
    """The training step, composed; the gradients of the pooling's parameters are zero."""
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
