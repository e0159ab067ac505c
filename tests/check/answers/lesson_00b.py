"""Answers to the exercises of lesson 00b: right ones, and wrong ones with a word of the verdict."""

import numpy as np

from cnnlab.lessons.lesson_00b import at_least, four_sums, lines, sums


def every_fourth(a):
    return sum((a[k::4].sum() for k in range(4)), np.float32(0))


def in_one(a):
    return np.float32(a.sum(dtype=np.float64))


def forgets_the_rest(a):
    return a[: len(a) // 4 * 4].sum()


def reads_beyond(a):
    return sum(a[i] for i in range(len(a) // 4 * 4 + 4) if i < len(a) or a[i])


def returns_nothing(a):
    a.sum()


RIGHT = [
    (sums, 8),
    (lines, 14),
    (
        at_least,
        lambda peak, bandwidth, flop, bytes_moved: max(flop / peak, bytes_moved / bandwidth),
    ),
    (four_sums, every_fourth),
    (four_sums, in_one),
]
WRONG = [
    (sums, 4, "too small"),
    (lines, 28, "too large"),
    (lines, 1, "too small"),
    (at_least, lambda peak, bandwidth, flop, bytes_moved: flop / peak, "too small"),
    (
        at_least,
        lambda peak, bandwidth, flop, bytes_moved: flop / peak + bytes_moved / bandwidth,
        "too large",
    ),
    (
        at_least,
        lambda peak, bandwidth, flop, bytes_moved: min(flop / peak, bytes_moved / bandwidth),
        "too small",
    ),
    (four_sums, forgets_the_rest, "of 1 numbers"),
    (four_sums, returns_nothing, "got None"),
    (four_sums, reads_beyond, "IndexError"),
]
