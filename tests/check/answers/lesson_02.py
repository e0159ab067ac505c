"""Answers to the exercises of lesson 02, right and wrong."""

import functools

import numba
import numpy as np

from cnnlab.lessons.lesson_02 import by_images, max_with_winners, repaired


def of_windows(x, z, winner, stride=4, *, first=True, begin=-np.inf):
    for n, c, p, q in np.ndindex(z.shape):
        best = begin
        for m in range(stride**2):
            value = x[n, c, p * stride + m // stride, q * stride + m % stride]
            wins = not (value <= best or np.isnan(best))
            if wins or (value == best and not first):
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


def by_weight(x, dz, dw, stride=4, shift=0):
    for c, k, l in np.ndindex(dw.shape):
        taps = x[c, k::stride, (l + shift) % stride :: stride]
        dw[c, k, l] = (taps * dz[c]).sum()


def added_to(x, dz, dw, stride=4):
    before = dw.copy()
    by_weight(x, dz, dw, stride)
    dw += before


@numba.njit
def one_chain(x, dz, dw, stride=4):
    for c in range(dz.shape[0]):
        for k in range(stride):
            for l in range(stride):
                total = np.float32(0)
                for n in range(x.shape[3]):
                    for p in range(dz.shape[1]):
                        for q in range(dz.shape[2]):
                            total += dz[c, p, q, n] * x[c, p * stride + k, q * stride + l, n]
                dw[c, k, l] = total


def loses_nan(x, z, winner, stride=4):
    by_argmax(np.nan_to_num(x, nan=-np.inf), z, winner, stride)


RIGHT = [
    (max_with_winners, by_argmax),
    (max_with_winners, of_windows),
    (repaired, thread),
    (by_images, by_weight),
]
WRONG = [
    (max_with_winners, functools.partial(of_windows, first=False), "winner is not"),
    (max_with_winners, functools.partial(of_windows, begin=-0.0), "z is not the largest"),
    (max_with_winners, transposed, "winner is not"),
    (repaired, functools.partial(thread, apart=2), "at p=1, q=0"),
    (repaired, functools.partial(thread, reduce=np.max), "at p=0, q=0"),
    (max_with_winners, loses_nan, "z is not the largest"),
    (by_images, functools.partial(by_weight, shift=1), "dw"),
    (by_images, added_to, "dw"),
    (by_images, one_chain, "no vector instructions"),
]
