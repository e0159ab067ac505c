"""Answers to the exercises of lesson 02, right and wrong."""

import numpy as np

from cnnlab import check
from cnnlab.network import Network

NET = Network()


def weights(answer):
    return check.exercise("pool_backward_weights", answer)


def rows(answer):
    return check.value(
        "rows at stride 2", answer, (NET["conv"].shape[1] - NET["pool"].layer.size) // 2 + 1
    )


def size(answer):
    return check.value("bytes of the maps", answer, 4 * np.prod(NET["conv"].shape))


def by_slices(x, dz, dw, stride=4):
    (_, K, _), (P, Q) = dw.shape, dz.shape[2:]
    for k in range(K):
        for l in range(K):
            seen = x[:, :, k : k + stride * P : stride, l : l + stride * Q : stride]
            dw[:, k, l] = (dz * seen[:, :, :P, :Q]).sum(axis=(0, 2, 3))


def by_loops(x, dz, dw, stride=4):
    dw[:] = 0
    K = dw.shape[1]
    for n, c, p, q in np.ndindex(dz.shape):
        i, j = p * stride, q * stride
        dw[c] += dz[n, c, p, q] * x[n, c, i : i + K, j : j + K]


def stride_of_four(x, dz, dw, stride=4):
    dw[:] = 0
    K = dw.shape[1]
    for n, c, p, q in np.ndindex(dz.shape):
        i, j = min(4 * p, x.shape[2] - K), min(4 * q, x.shape[3] - K)
        dw[c] += dz[n, c, p, q] * x[n, c, i : i + K, j : j + K]


def transposed(x, dz, dw, stride=4):
    by_slices(x, dz, dw, stride)
    dw[:] = dw.transpose(0, 2, 1).copy()


def one_image(x, dz, dw, stride=4):
    by_slices(x[:1], dz[:1], dw, stride)


RIGHT = [(weights, by_slices), (weights, by_loops), (rows, 11), (size, 4 * 6 * 24 * 24)]
WRONG = [
    (weights, lambda x, dz, dw, stride=4: None, "never written"),
    (weights, stride_of_four, "one square image"),
    (weights, transposed, "right with its axes in the order (0, 2, 1)"),
    (weights, one_image, "several images"),
    (rows, 6, "too small"),
    (rows, 12, "too large"),
    (rows, ..., "not yet answered"),
    (size, 6 * 24 * 24, "too small"),
    (size, 8 * 6 * 24 * 24, "too large"),
    (size, None, "not yet answered"),
]
