"""Answers to the exercises of lesson 01, right and wrong."""

import numba
import numpy as np

from cnnlab.kernels import KERNELS
from cnnlab.lessons.lesson_01 import bias_gradient, filter_that_tells, input_gradient, wrong_numbers


def bias_by_numpy(dz, db):
    np.sum(dz, axis=(0, 2, 3), out=db)


def bias_of_the_first_image(dz, db):
    db[:] = dz[0].sum(axis=(1, 2))


def bias_added(dz, db):
    db += dz.sum(axis=(0, 2, 3))


def bias_mean(dz, db):
    db[:] = dz.mean(axis=(0, 2, 3))


@numba.njit
def bias_row_by_row(dz, db):
    db[:] = 0
    for n in range(dz.shape[0]):
        for f in range(dz.shape[1]):
            for p in range(dz.shape[2]):
                total = np.float32(0)
                for q in range(dz.shape[3]):
                    total += dz[n, f, p, q]
                db[f] += total


def in_one_chain(zero):
    @numba.njit
    def bias(dz, db):
        for f in range(dz.shape[1]):
            total = zero
            for n in range(dz.shape[0]):
                for p in range(dz.shape[2]):
                    for q in range(dz.shape[3]):
                        total += dz[n, f, p, q]
            db[f] = total

    return bias


bias_in_one_chain, bias_in_double = in_one_chain(np.float32(0)), in_one_chain(0.0)


@numba.njit
def bias_in_two(dz, db):
    """Two accumulators, which take turns."""
    for f in range(dz.shape[1]):
        one = two = np.float32(0)
        for n in range(dz.shape[0]):
            for p in range(dz.shape[2]):
                for q in range(dz.shape[3]):
                    one, two = two, one + dz[n, f, p, q]
        db[f] = one + two


@numba.njit
def bias_without_remainder(dz, db):
    for f in range(dz.shape[1]):
        s0 = s1 = s2 = s3 = np.float32(0)
        for n in range(dz.shape[0]):
            for p in range(dz.shape[2]):
                for q in range(0, dz.shape[3] - 3, 4):
                    s0 += dz[n, f, p, q]
                    s1 += dz[n, f, p, q + 1]
                    s2 += dz[n, f, p, q + 2]
                    s3 += dz[n, f, p, q + 3]
        db[f] = (s0 + s1) + (s2 + s3)


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
    (filter_that_tells, [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
    (filter_that_tells, np.random.default_rng(0).normal(size=(3, 3))),
    (bias_gradient, bias_by_numpy),
    (bias_gradient, bias_row_by_row),
    (wrong_numbers, 56),
    (input_gradient, gather),
    (input_gradient, scatter),
]
WRONG = [
    (filter_that_tells, [[1, 2, 1], [2, 4, 2], [1, 2, 1]], "flips rows and columns passes"),
    (filter_that_tells, [[1, 0, -1], [2, 0, -2], [1, 0, -1]], "flips the rows passes"),
    (filter_that_tells, [[1, 2, 3], [2, 5, 6], [3, 6, 9]], "swaps rows and columns passes"),
    (filter_that_tells, [[1, 2, 1], [0, 3, 0], [4, 5, 4]], "flips the columns passes"),
    (filter_that_tells, [1, 2, 3], "expected 3 × 3 numbers"),
    (filter_that_tells, np.full((3, 3), np.nan), "expected 3 × 3 numbers"),
    (bias_gradient, lambda dz, db: None, "not yet answered"),
    (bias_gradient, bias_of_the_first_image, "several images"),
    (bias_gradient, bias_added, "without being set to zero"),
    (bias_gradient, bias_mean, "times the expected value"),
    (bias_gradient, lends_itself_the_package, "expected a kernel of your own"),
    (bias_gradient, KERNELS["loops"].kernel("conv_backward_bias"), "expected a kernel of your own"),
    (bias_gradient, bias_in_one_chain, "100% of the additions wait"),
    (bias_gradient, bias_in_two, "50% of the additions wait"),
    (bias_gradient, bias_in_double, "sums in float64"),
    (bias_gradient, bias_without_remainder, "]: expected"),
    (wrong_numbers, 28, "too small"),  # of one image
    (wrong_numbers, 126, "too large"),  # all of dx
    (input_gradient, in_blocks_of_sixteen_columns, "17 columns of results"),
    (input_gradient, misses_the_last, "one square image"),
    (input_gradient, takes_every_step, "two apart"),
    (input_gradient, upside_down, "]: expected"),
]
