"""Answers to the exercises of lesson 00: right ones, and wrong ones with a word of the verdict."""

import numpy as np

from cnnlab.lessons.lesson_00 import bias_gradient, images, outputs, parameters


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


def by_sums(x, w, b, z):
    np.einsum("ni,oi->no", x, w, out=z)
    z += b


def without_bias(x, w, b, z):
    z[:] = x @ w.T


def not_turned(x, w, b, z):
    z[:] = x @ w + b


def returns(x, w, b, z):
    return x @ w.T + b


RIGHT = [
    (parameters, 6 * 5 * 5 + 6 + 6 * 4 * 4 + 6 + 10 * 216 + 10),
    (outputs, by_sums),
    (images, 4095),
    (images, 1),
    (bias_gradient, with_matrix_product),
]
WRONG = [
    (parameters, ..., "not yet answered"),
    (parameters, 6 * 5 * 5 + 6 * 4 * 4 + 10 * 216, "too small"),  # without biases
    (parameters, 6 * 5 * 5 + 6 + 4 * 4 + 1 + 10 * 216 + 10, "too small"),  # one pooling kernel
    (parameters, 6 * 5 * 5 + 6 + 6 * 4 * 4 + 6 + 10 * 6 * 24 * 24 + 10, "too large"),  # no pooling
    (outputs, without_bias, "elements differ"),
    (outputs, not_turned, "ValueError"),
    (outputs, returns, "never written"),
    (images, 4096, "both agree"),
    (images, 64 * 3, "both agree"),
    (bias_gradient, mean, "times the expected value"),
    (bias_gradient, adds_only, "added to without being set to zero"),
    (bias_gradient, renames, "never written"),
    (bias_gradient, over_the_wrong_axis, "It is right for one square image"),
]
