"""Answers to the exercises of lesson 02, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_02 import bytes_of_the_maps, rows_at_stride_2, weights_gradient


def by_slices(x, dz, dw, stride=4):
    (_, K, _), (P, Q) = dw.shape, dz.shape[2:]
    for k in range(K):
        for l in range(K):
            seen = x[:, :, k : k + stride * P : stride, l : l + stride * Q : stride]
            dw[:, k, l] = (dz * seen[:, :, :P, :Q]).sum(axis=(0, 2, 3))


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


RIGHT = [
    (weights_gradient, by_slices),
    (rows_at_stride_2, 11),
    (bytes_of_the_maps, 4 * 6 * 24 * 24),
]
WRONG = [
    (weights_gradient, lambda x, dz, dw, stride=4: None, "not yet answered"),
    (weights_gradient, stride_of_four, "one square image"),
    (weights_gradient, transposed, "right with its axes in the order (0, 2, 1)"),
    (weights_gradient, one_image, "several images"),
    (rows_at_stride_2, 6, "too small"),
    (rows_at_stride_2, 12, "too large"),
    (bytes_of_the_maps, 6 * 24 * 24, "too small"),
]
