"""Answers to the exercises of lesson 63, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_63 import challenge_seven, diagnosis, odd, ternary


def odd_by_plane(bits, product, sum_x):
    return sum(2 * product * (k == 0) - 2**k * sum_x for k in range(bits))


def by_or(x, plus, minus, count):
    """Ones where x meets a weight, less twice those where it is negative."""
    return count(x & (plus | minus)) - 2 * count(x & minus)


def in_place(x, plus, minus, count):
    plus &= x
    return count(plus) - count(x & minus)


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


SPOTS = ["top plane", "padding counted", "shift missing", "sound", "zeros around"]
RIGHT = [
    (odd, odd_by_plane),
    (ternary, by_or),
    (diagnosis, SPOTS),
    (challenge_seven, by_majority),
]
WRONG = [
    (odd, lambda bits, product, sum_x: 2 * product - sum_x, "odd("),
    (odd, lambda bits, product, sum_x: product - (2**bits - 1) * sum_x, "odd("),
    (odd, lambda bits, product, sum_x: 2 * product - 2**bits * sum_x, "odd("),
    (odd, lambda bits, product, sum_x: 2 * product - (2**bits - 1), "odd("),
    (ternary, lambda x, plus, minus, count: count(x & plus), "expected"),
    (ternary, lambda x, plus, minus, count: count(x & minus) - count(x & plus), "expected"),
    (ternary, lambda x, plus, minus, count: count(x & (plus ^ minus)), "expected"),
    (ternary, lambda x, plus, minus, count: count(x & plus) - count(minus), "expected"),
    (ternary, lambda x, plus, minus, count: x & plus, "expected"),
    (ternary, in_place, "are changed"),
    (diagnosis, ["sound", *SPOTS[1:]], "1 is not sound"),
    (diagnosis, [SPOTS[0], "zeros around", *SPOTS[2:]], "2 is not zeros around"),
    (diagnosis, [*SPOTS[:2], "top plane", *SPOTS[3:]], "3 is not top plane"),
    (diagnosis, [*SPOTS[:3], "shift missing", SPOTS[4]], "4 is not shift missing"),
    (diagnosis, [*SPOTS[:4], "padding counted"], "5 is not padding counted"),
    (challenge_seven, lambda words, count: sum(map(count, words)), "three are enough"),
    (challenge_seven, lambda words, count: count(words), "expected a row of 1"),
    (challenge_seven, lambda words, count: count(words.reshape(-1)), "expected a row of 1"),
    (challenge_seven, lambda words, count: count(np.bitwise_xor.reduce(words)), "expected"),
    (challenge_seven, carries_once, "expected"),
    (challenge_seven, half_adders, "expected"),
]
