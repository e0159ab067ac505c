"""Answers to the exercises of lesson 02, right and wrong."""

import functools

import numpy as np

from cnnlab.lessons.lesson_02 import (
    in_order,
    max_with_winners,
    repaired,
)


def of_windows(x, z, winner, stride=4, *, first=True, begin=-np.inf):
    for n, c, p, q in np.ndindex(z.shape):
        best = begin
        for m in range(stride**2):
            value = x[n, c, p * stride + m // stride, q * stride + m % stride]
            if value > best or (value == best and not first):
                best, winner[n, c, p, q] = value, m
        z[n, c, p, q] = best


def by_argmax(x, z, winner, stride=4):
    for n, c, p, q in np.ndindex(z.shape):
        i, j = p * stride, q * stride
        window = x[n, c, i : i + stride, j : j + stride]
        z[n, c, p, q], winner[n, c, p, q] = window.max(), window.argmax()


def transposed(x, z, winner, stride=4):
    by_argmax(x, z, winner, stride)
    winner[:] = winner % stride * stride + winner // stride


def thread(x, w, b, p, q, apart=4, reduce=np.sum):
    return b + reduce(x[apart * p : apart * p + 4, apart * q : apart * q + 4] * w)


def rows_at_once(x, w, b, z, stride=4):
    C, P, Q, _ = z.shape
    for c in range(C):
        for p in range(P):
            z[c, p] = b[c]
            for k in range(stride):
                for q in range(Q):
                    for l in range(stride):
                        z[c, p, q] += w[c, k, l] * x[c, p * stride + k, q * stride + l]


def window_by_window(x, w, b, z, stride=4):
    for c, p, q in np.ndindex(z.shape[:3]):
        z[c, p, q] = b[c]
        for k, l in np.ndindex(stride, stride):
            z[c, p, q] += w[c, k, l] * x[c, p * stride + k, q * stride + l]


def twice(x, w, b, z, stride=4):
    rows_at_once(x, w, b, z, stride)
    rows_at_once(x, w, b, z, stride)


def without_bias(x, w, b, z, stride=4):
    rows_at_once(x, w, 0 * np.array(b), z, stride)


RIGHT = [
    (max_with_winners, by_argmax),
    (max_with_winners, of_windows),
    (repaired, thread),
    (in_order, rows_at_once),
]
WRONG = [
    (max_with_winners, functools.partial(of_windows, first=False), "winner is not"),
    (max_with_winners, functools.partial(of_windows, begin=-0.0), "z is not the largest"),
    (max_with_winners, transposed, "winner is not"),
    (repaired, functools.partial(thread, apart=2), "at p=1, q=0"),
    (repaired, functools.partial(thread, reduce=np.max), "at p=0, q=0"),
    (in_order, window_by_window, "goes back in x"),
    (in_order, twice, "it reads"),
    (in_order, without_bias, "z is not that"),
]
