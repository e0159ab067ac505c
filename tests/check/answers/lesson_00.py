"""Answers to the exercises of lesson 00: right ones, and wrong ones with a word of the verdict."""

import numpy as np

from cnnlab.lessons.lesson_00 import bias_gradient, parameters, steps


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


RIGHT = [
    (parameters, 6 * 5 * 5 + 6 + 6 * 4 * 4 + 6 + 10 * 216 + 10),
    (steps, 938),
    (bias_gradient, with_matrix_product),
]
WRONG = [
    (parameters, ..., "not yet answered"),
    (parameters, 6 * 5 * 5 + 6 * 4 * 4 + 10 * 216, "too small"),  # without biases
    (parameters, 6 * 5 * 5 + 6 + 4 * 4 + 1 + 10 * 216 + 10, "too small"),  # one pooling kernel
    (parameters, 6 * 5 * 5 + 6 + 6 * 4 * 4 + 6 + 10 * 6 * 24 * 24 + 10, "too large"),  # no pooling
    (steps, 60_000 // 64, "too small"),
    (steps, 60_000, "too large"),
    (bias_gradient, mean, "times the expected value"),
    (bias_gradient, adds_only, "added to without being set to zero"),
    (bias_gradient, renames, "never written"),
    (bias_gradient, over_the_wrong_axis, "It is right for one square image"),
]
