"""Answers to the exercises of lesson 63, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_63 import challenge_seven, fold, odd, product


def odd_by_plane(bits, product, sum_x):
    return sum(2 * product * (k == 0) - 2**k * sum_x for k in range(bits))


def limits_of(f, b):
    return (np.array([[1], [3], [5]]) / 6 - b) / f


def fold_by_steps(f, b):
    """The last whole number below each limit."""
    signs = np.where(f > 0, 1, -1)
    return np.ceil(limits_of(f, b) * signs).astype(int) - 1, signs


def fold_unturned(f, b):
    return np.floor(np.sort(limits_of(f, b), axis=0)).astype(int), np.ones(len(f), int)


def fold_nearest(f, b):
    return np.rint(limits_of(abs(f), b)).astype(int), np.sign(f).astype(int)


def fold_at_levels(f, b):
    """Where a level is, not halfway to it."""
    return np.floor((np.array([[1], [2], [3]]) / 3 - b) / abs(f)).astype(int), np.sign(f)


def fold_by_factor(f, b):
    """Divided by f, and then all turned: the bias, too."""
    limits = np.floor((np.array([[1], [3], [5]]) / 6 + b) / abs(f)).astype(int)
    return limits, np.sign(f).astype(int)


def adder(a, b, c):
    return a ^ b ^ c, (a & b) | (c & (a ^ b))


def by_majority(words, count):
    """The same four adders, with carries as majorities, and in another order."""
    first, one = adder(*words[:3])
    second, two = adder(first, *words[3:5])
    last, three = adder(second, *words[5:])
    twos, fours = adder(one, two, three)
    return count(last) + 2 * count(twos) + 4 * count(fours)


def carries_once(words, count):
    """Carries count as much as sums."""
    first, one = adder(*words[:3])
    second, two = adder(first, *words[3:5])
    last, three = adder(second, *words[5:])
    twos, fours = adder(one, two, three)
    return count(last) + count(twos) + count(fours)


def half_adders(words, count):
    """A carry of three bits that forgets the third."""
    a, b, c, d, e, f, g = words
    one = a ^ b ^ c ^ d ^ e ^ f ^ g
    return count(one) + 2 * count(a & b | d & e) + 4 * count(a & b & d & e)


def product_of(worth):
    def total(x, w, p, q, count):
        a, b = (np.packbits(y >> np.arange(8)[:, None, None] & 1, axis=2) for y in (x, w))
        pairs = [(i, j) for i in range(p) for j in range(q)]
        return sum(worth(i, j, q - 1) * count(a[i][:, None] & b[j]) for i, j in pairs)

    return total


RIGHT = [
    (odd, lambda bits, product, sum_x: 2 * product + sum_x - (sum_x << bits)),
    (odd, odd_by_plane),
    (product, product_of(lambda i, j, top: 2 ** (i + j) * (1 - 2 * (j == top)))),
    (fold, fold_by_steps),
    (challenge_seven, by_majority),
]
WRONG = [
    (odd, lambda bits, product, sum_x: 2 * product - sum_x, "odd("),
    (odd, lambda bits, product, sum_x: product - (2**bits - 1) * sum_x, "odd("),
    (odd, lambda bits, product, sum_x: 2 * product - 2**bits * sum_x, "odd("),
    (odd, lambda bits, product, sum_x: 2 * product - (2**bits - 1), "odd("),
    (product, product_of(lambda i, j, top: 2 ** (i + j)), "not the product"),
    (product, product_of(lambda i, j, top: 1 - 2 * (j == top)), "not the product"),
    (product, lambda x, w, p, q, count: count(x[:, None] & w), "expected bytes"),
    (product, lambda x, w, p, q, count: x @ w.T, "0 calls of count"),
    (fold, fold_unturned, "the level is not"),
    (fold, fold_nearest, "the level is not"),
    (fold, fold_at_levels, "the level is not"),
    (fold, fold_by_factor, "the level is not"),
    (fold, lambda f, b: (limits_of(abs(f), b), np.sign(f)), "whole numbers"),
    (fold, lambda f, b: (fold_by_steps(f, b)[0], f), "signs of 1 or -1"),
    (fold, lambda f, b: (fold_by_steps(f, b)[0][0], np.sign(f)), "expected shapes"),
    (fold, lambda f, b: (fold_by_steps(f, b)[0], 1), "expected shapes"),
    (challenge_seven, lambda words, count: sum(map(count, words)), "three are enough"),
    (challenge_seven, lambda words, count: count(words), "expected a row of 1"),
    (challenge_seven, lambda words, count: count(words.reshape(-1)), "expected a row of 1"),
    (challenge_seven, lambda words, count: count(np.bitwise_xor.reduce(words)), "expected"),
    (challenge_seven, carries_once, "expected"),
    (challenge_seven, half_adders, "expected"),
]
