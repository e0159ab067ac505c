"""Answers to the exercises of lesson 05, right and wrong."""

import numba
import numpy as np

from cnnlab.lessons.lesson_05 import (
    bias_in_vectors,
    fast_convolution,
    sigmoid_to_a_thousandth,
    which_loop,
)


@numba.njit
def rows_first(dz, db):
    totals = np.zeros(dz.shape[1:], np.float32)
    for p in range(dz.shape[0]):
        for f in range(dz.shape[1]):
            row = totals[f]
            for m in range(row.size):
                row[m] += dz[p, f, m]
    for f in range(dz.shape[1]):
        db[f] = totals[f].sum()


@numba.njit
def one_chain(dz, db):
    for f in range(dz.shape[1]):
        total = np.float32(0)
        for p in range(dz.shape[0]):
            for m in range(dz.shape[2]):
                total += dz[p, f, m]
        db[f] = total


reordered = numba.njit(fastmath=True)(one_chain.py_func)


@numba.njit
def first_rows_only(dz, db):
    for f in range(dz.shape[1]):
        db[f] = dz[0, f].sum()


def of_degree(degree):
    """A sigmoid whose exponential is the Taylor polynomial of that degree, compiled."""

    @numba.njit(error_model="numpy")
    def sigmoid(z, y):
        one, ln2, shift = np.float32(1), np.float32(0.69314718), np.float32(12583039)
        for m in range(z.size):
            t = min(max(-z[m], np.float32(-87)), np.float32(88))
            rounded = np.float32(t * (one / ln2) + shift)
            power = np.int32(rounded.view(np.int32) << np.int32(23)).view(np.float32)
            r = t - (rounded - shift) * ln2
            e = one
            for k in range(degree, 0, -1):
                e = one + e * r * (one / np.float32(k))
            y[m] = one / (one + e * power)

    return sigmoid


@numba.njit(error_model="numpy")
def by_a_call(z, y):
    for m in range(z.size):
        y[m] = np.float32(1) / (np.float32(1) + np.exp(-z[m]))


def sigmoid_in_numpy(z, y):
    y[:] = 1 / (1 + np.exp(-z))


@numba.njit
def rows_without_a_stride(x, w, b, z, stride=1):
    for n in range(z.shape[0]):
        for f in range(z.shape[1]):
            for p in range(z.shape[2]):
                row = z[n, f, p]
                row[:] = b[f]
                for c in range(w.shape[1]):
                    for k in range(w.shape[2]):
                        for l in range(w.shape[3]):
                            tap = x[n, c, p + k, l:]
                            for q in range(row.size):
                                row[q] += w[f, c, k, l] * tap[q]


RIGHT = [
    (which_loop, ["C", "A"]),
    (sigmoid_to_a_thousandth, of_degree(3)),
    (bias_in_vectors, rows_first),
]
WRONG = [
    (which_loop, ["B", "A"], "B, A"),
    (which_loop, ["B"], "expected 2 of A, B, C"),
    (which_loop, [..., ...], "not yet answered"),
    (sigmoid_to_a_thousandth, of_degree(2), "to a thousandth"),
    (sigmoid_to_a_thousandth, by_a_call, "calls exp"),
    (sigmoid_to_a_thousandth, sigmoid_in_numpy, "plain Python"),
    (bias_in_vectors, one_chain, "no vector instructions"),
    (bias_in_vectors, reordered, "expected no fastmath"),
    (bias_in_vectors, first_rows_only, "for dz of 7 rows"),
    (fast_convolution, rows_without_a_stride, "windows two apart"),
]
