"""Answers to the exercises of lesson 00: right ones, and wrong ones with a word of the verdict."""

import numba
import numpy as np

from cnnlab.lessons.lesson_00 import (
    bias_gradient,
    block_length,
    colleague,
    parameters,
    sigmoid_kernel,
)


def with_matrix_product(dz, db):
    np.matmul(np.ones(len(dz), dz.dtype), dz, out=db)


def mean(dz, db):
    db[:] = dz.mean(axis=0)


def adds_only(dz, db):
    db += dz.sum(axis=0)


def renames(dz, db):
    db = dz.sum(axis=0)  # noqa: F841


def over_the_wrong_axis(dz, db):
    db[:] = dz.sum(axis=1)


@numba.njit
def in_a_loop(z, y):
    z, y = z.reshape(z.size), y.reshape(y.size)
    for m in range(z.size):
        y[m] = 1 / (1 + np.exp(-z[m]))


@numba.njit
def without_the_last(z, y):
    z, y = z.reshape(z.size), y.reshape(y.size)
    for m in range(z.size - 1):
        y[m] = 1 / (1 + np.exp(-z[m]))


def without_the_sign(z, y):
    y[:] = 1 / (1 + np.exp(z))


def returns(z, y):
    return 1 / (1 + np.exp(-z))


RIGHT = [
    (parameters, 6 * (3 * 5 * 5 + 1) + 6 * (4 * 4 + 1) + 10 * (6 * 7 * 7 + 1)),
    (sigmoid_kernel, in_a_loop),
    (bias_gradient, with_matrix_product),
    (block_length, 24),
]
WRONG = [
    (parameters, ..., "not yet answered"),
    (parameters, 6 * 3 * 5 * 5 + 6 * 4 * 4 + 10 * 294, "too small"),  # without biases
    (parameters, 6 * 76 + 4 * 4 + 1 + 10 * 295, "too small"),  # one pooling kernel
    (parameters, 6 * 76 + 6 * 17 + 10 * (6 * 28 * 28 + 1), "too large"),  # no pooling
    (parameters, 6 * (5 * 5 + 1) + 6 * 17 + 10 * 295, "too small"),  # one channel
    (parameters, 6 * 76 + 6 * 17 + 10 * 217, "too small"),  # maps of the smaller image
    (parameters, 6 * 76 + 6 * (6 * 16 + 1) + 10 * 295, "too large"),  # pooling over all maps
    (sigmoid_kernel, without_the_last, "got NaN"),
    (sigmoid_kernel, without_the_sign, "expected"),
    (sigmoid_kernel, returns, "never written"),
    (sigmoid_kernel, colleague, "never written"),  # none of a block of 24 is full
    (bias_gradient, mean, "times the expected value"),
    (bias_gradient, adds_only, "added to without being set to zero"),
    (bias_gradient, renames, "never written"),
    (bias_gradient, over_the_wrong_axis, "It is right for one square image"),
    (block_length, 3456, "too large"),
    (block_length, 8, "too small"),  # the lanes
    (block_length, 23, "too small"),  # the most that may be left over
]
