"""Answers to the exercises of lesson 05, right and wrong."""

import numba
import numpy as np

from cnnlab.lessons.lesson_05 import bias_in_vectors, sigmoid_gradient, trips
from cnnlab.network import Network

TAPS = Network()["conv"].layer.kernel ** 2


@numba.njit(fastmath=True)
def bias_rows(dz, db):
    for f in range(dz.shape[1]):
        total = np.float32(0)
        for n in range(dz.shape[0]):
            flat = dz[n, f].reshape(-1)
            for m in range(flat.size):
                total += flat[m]
        db[f] = total


@numba.njit(fastmath=True)
def bias_partial_sums(dz, db):
    flat = dz.reshape(dz.shape[0], dz.shape[1], -1)
    db[:] = np.float32(0)
    for n in range(flat.shape[0]):
        for f in range(flat.shape[1]):
            part = np.float32(0)
            for m in range(flat.shape[2]):
                part += flat[n, f, m]
            db[f] += part


@numba.njit
def bias_in_strict_order(dz, db):
    for f in range(dz.shape[1]):
        total = np.float32(0)
        for n in range(dz.shape[0]):
            flat = dz[n, f].reshape(-1)
            for m in range(flat.size):
                total += flat[m]
        db[f] = total


def bias_plain_python(dz, db):
    db[:] = dz.sum(axis=(0, 2, 3))


@numba.njit(fastmath=True)
def bias_of_one_image(dz, db):
    for f in range(dz.shape[1]):
        flat, total = dz[0, f].reshape(-1), np.float32(0)
        for m in range(flat.size):
            total += flat[m]
        db[f] = total


@numba.njit(fastmath=True)
def sigmoid_flat(y, dy, dz):
    a, b, c = y.reshape(-1), dy.reshape(-1), dz.reshape(-1)
    for m in range(a.size):
        c[m] = b[m] * a[m] * (np.float32(1) - a[m])


@numba.njit
def sigmoid_expanded(y, dy, dz):
    a, b, c = y.reshape(-1), dy.reshape(-1), dz.reshape(-1)
    for m in range(a.size):
        c[m] = b[m] * (a[m] - a[m] * a[m])


@numba.njit
def sigmoid_forgets_dy(y, dy, dz):
    a, c = y.reshape(-1), dz.reshape(-1)
    for m in range(a.size):
        c[m] = a[m] * (np.float32(1) - a[m])


@numba.njit
def sigmoid_zero(y, dy, dz):
    dz[:] = 0


def sigmoid_plain_python(y, dy, dz):
    dz[:] = dy * y * (1 - y)


RIGHT = [
    (bias_in_vectors, bias_rows),
    (bias_in_vectors, bias_partial_sums),
    (trips, TAPS * 3 / (TAPS + 2 * TAPS / 5)),
    (sigmoid_gradient, sigmoid_flat),
    (sigmoid_gradient, sigmoid_expanded),
]
WRONG = [
    (bias_in_vectors, bias_in_strict_order, "no vector instructions"),
    (bias_in_vectors, bias_plain_python, "plain Python"),
    (bias_in_vectors, bias_of_one_image, "several images"),
    (trips, 5, "too large"),
    (trips, 1, "too small"),
    (trips, ..., "not yet answered"),
    (sigmoid_gradient, sigmoid_forgets_dy, "dz["),
    (sigmoid_gradient, sigmoid_zero, "got 0;"),
    (sigmoid_gradient, sigmoid_plain_python, "plain Python"),
]
