"""Answers to the exercises of lesson 03, right and wrong ones."""

import numba
import numpy as np

from cnnlab.lessons.lesson_03 import (
    axpy_forward,
    four_images,
    loss_from_z,
    repaired,
    softmax_gradient,
)

quiet = np.errstate(all="ignore")  # some wrong answers overflow, which is their point


@numba.njit
def leaves_the_rest_out(x, w, b, z):
    for n in range(0, z.shape[0] - 3, 4):
        for o in range(z.shape[1]):
            for m in range(n, n + 4):
                z[m, o] = b[o]
                for i in range(x.shape[1]):
                    z[m, o] += w[o, i] * x[m, i]


@numba.njit
def forgets_the_bias(x, w, b, z):
    for n in range(z.shape[0]):
        for o in range(z.shape[1]):
            z[n, o] = 0
            for i in range(x.shape[1]):
                z[n, o] += w[o, i] * x[n, i]


@numba.njit
def only_adds(x, w, b, z):
    for n in range(z.shape[0]):
        for o in range(z.shape[1]):
            for i in range(x.shape[1]):
                z[n, o] += w[o, i] * x[n, i]
            z[n, o] += b[o]


def writes_past_the_end(x, w, b, z):
    N, O = z.shape
    beyond = np.lib.stride_tricks.as_strided(z, (-(-N // 4) * 4, O))
    beyond[N:] = 0
    z[:] = x @ w.T + b


def larger_of_zero(z, t):
    return max(z, 0) - t * z + np.log1p(np.exp(-abs(z)))


@quiet
def sigmoid_first(z, t):
    y = 1 / (1 + np.exp(-z))
    return -(t * np.log(y) + (1 - t) * np.log(1 - y))


@quiet
def overflows(z, t):
    return np.log1p(np.exp(z)) - t * z


def targets_swapped(z, t):
    return np.logaddexp(0, z) - (1 - t) * z


@quiet
def softmax_overflows(z, label):
    y = np.exp(z)
    return y / y.sum() - np.eye(10)[label]


def softmax_of_sigmoids(z, label):
    return 1 / (1 + np.exp(-z)) - np.eye(10)[label]


def softmax_without_target(z, label):
    return np.exp(z - np.logaddexp.reduce(z))


@numba.njit
def bounds_exchanged(dz, w, dx):
    for n in range(dx.shape[0]):
        for i in range(dz.shape[1]):
            dx[n, i] = 0
            for o in range(dx.shape[1]):
                dx[n, i] += w[i, o] * dz[n, o]


@numba.njit
def still_a_chain(x, w, b, z):
    for n in range(z.shape[0]):
        for o in range(z.shape[1]):
            total = b[o]
            for i in range(x.shape[1]):
                total += w[o, i] * x[n, i]
            z[n, o] = total


RIGHT = [
    (loss_from_z, larger_of_zero),
    (softmax_gradient, lambda z, t: softmax_without_target(z, t) - np.eye(10)[t]),
]
WRONG = [
    (four_images, leaves_the_rest_out, "one square image"),
    (four_images, forgets_the_bias, "the bias seems to be missing"),
    (four_images, only_adds, "set to zero first"),
    (four_images, writes_past_the_end, "wrote outside z"),
    (loss_from_z, sigmoid_first, "at z=40, t=0"),
    (loss_from_z, overflows, "at z=1000, t=0"),
    (loss_from_z, targets_swapped, "at z="),
    (softmax_gradient, softmax_overflows, "got NaN"),
    (softmax_gradient, softmax_of_sigmoids, "label 3"),
    (softmax_gradient, softmax_without_target, "label 3"),
    (repaired, bounds_exchanged, "dense_backward_input"),
    (axpy_forward, still_a_chain, "no vector instructions"),
    (axpy_forward, forgets_the_bias, "the bias seems to be missing"),
]
