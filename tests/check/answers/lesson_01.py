"""Answers to the exercises of lesson 01, right and wrong."""

import numpy as np

from cnnlab.kernels import KERNELS
from cnnlab.lessons.lesson_01 import bias_gradient, input_gradient, multiply_adds


def bias_by_numpy(dz, db):
    np.sum(dz, axis=(0, 2, 3), out=db)


def bias_of_the_first_image(dz, db):
    db[:] = dz[0].sum(axis=(1, 2))


def bias_added(dz, db):
    db += dz.sum(axis=(0, 2, 3))


def bias_mean(dz, db):
    db[:] = dz.mean(axis=(0, 2, 3))


def gather(dz, w, dx, stride=1, past=0, steps=True):
    """The gradient with respect to the input, pixel by pixel; `past` and `steps` spoil it."""
    K, (P, Q) = w.shape[2], dz.shape[2:]
    for n, c, i, j in np.ndindex(dx.shape):
        total = 0.0
        for k in range(K):
            for l in range(K):
                p, rest_p = divmod(i - k, stride)
                q, rest_q = divmod(j - l, stride)
                fits = not (steps and (rest_p or rest_q))
                if fits and 0 <= p < P - past and 0 <= q < Q - past:
                    total += float(dz[n, :, p, q] @ w[:, c, k, l])
        dx[n, c, i, j] = total


def scatter(dz, w, dx, stride=1):
    dx[:] = 0
    K = w.shape[2]
    for n, f, p, q in np.ndindex(dz.shape):
        i, j = p * stride, q * stride
        dx[n, :, i : i + K, j : j + K] += dz[n, f, p, q] * w[f]


def lends_itself_the_package(dz, db):
    from cnnlab import kernels

    kernels.KERNELS["reference"].conv_backward_bias(dz, db)


def in_blocks_of_sixteen_columns(dz, w, dx, stride=1):
    """The columns of dz in blocks of sixteen, and those left over only where there is no block."""
    kept = dz.shape[3] - dz.shape[3] % 16 or dz.shape[3]
    scatter(dz[..., :kept], w, dx, stride)


def misses_the_last(dz, w, dx, stride=1):
    gather(dz, w, dx, stride, past=1)


def takes_every_step(dz, w, dx, stride=1):
    gather(dz, w, dx, stride, steps=False)


def upside_down(dz, w, dx, stride=1):
    gather(dz, w[:, :, ::-1], dx, stride)


RIGHT = [
    (bias_gradient, bias_by_numpy),
    (input_gradient, gather),
    (input_gradient, scatter),
    (multiply_adds, 60_000 * 2 * 6 * 24 * 24 * 25),
]
WRONG = [
    (bias_gradient, lambda dz, db: None, "not yet answered"),
    (bias_gradient, bias_of_the_first_image, "several images"),
    (bias_gradient, bias_added, "without being set to zero"),
    (bias_gradient, bias_mean, "times the expected value"),
    (bias_gradient, lends_itself_the_package, "expected a kernel of your own"),
    (bias_gradient, KERNELS["loops"].kernel("conv_backward_bias"), "expected a kernel of your own"),
    (input_gradient, in_blocks_of_sixteen_columns, "17 columns of results"),
    (input_gradient, misses_the_last, "one square image"),
    (input_gradient, takes_every_step, "two apart"),
    (input_gradient, upside_down, "]: expected"),
    (multiply_adds, 60_000 * 6 * 24 * 24 * 25, "too small"),
    (multiply_adds, 60_000 * 4 * 6 * 24 * 24 * 25, "too large"),
]
