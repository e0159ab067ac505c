"""Answers to the exercises of lesson 00b: right ones, and wrong ones with a word of the verdict."""

from statistics import median
from time import perf_counter

import numpy as np

from cnnlab.lessons.lesson_00b import cores, four_sums, latency, rings


def in_lists(n_lines, k):
    lines = list(np.random.default_rng(3).permutation(n_lines))
    ring, starts = [0] * (8 * n_lines), []
    for j in range(k):
        mine = lines[j::k]
        starts.append(8 * int(mine[0]))
        for here, there in zip(mine, mine[1:] + mine[:1], strict=True):
            ring[8 * here] = 8 * int(there)
    return ring, starts


def one_ring(n_lines, k):
    ring, starts = in_lists(n_lines, 1)
    return ring, starts * k


def ascending(n_lines, k):
    ring = np.zeros(8 * n_lines, np.uint64)
    for part in np.array_split(8 * np.arange(n_lines), k):
        ring[part] = np.roll(part, -1)
    return ring, [part[0] for part in np.array_split(8 * np.arange(n_lines), k)]


def one_long(n_lines, k):
    ring, starts = in_lists(n_lines - k + 1, 1)
    alone = range(8 * (n_lines - k + 1), 8 * n_lines, 8)
    return ring + [at for start in alone for at in [start] * 8], [*starts, *alone]


def goes_on(follow, ring, calls, steps):
    at, times = np.zeros(1, np.uint64), []
    for _ in range(calls):
        start = perf_counter()
        follow(ring, at, steps)
        times.append(perf_counter() - start)
    return median(times) / steps


def begins_anew(follow, ring, calls, steps):
    return median(goes_on(follow, ring, 1, steps) for _ in range(calls))


def once_around_first(follow, ring, calls, steps):
    follow(ring, np.zeros(1, np.uint64), len(ring) // 8)
    return begins_anew(follow, ring, calls, steps)


def seconds_of_a_call(follow, ring, calls, steps):
    return steps * goes_on(follow, ring, calls, steps)


def every_fourth(a):
    return sum((a[k::4].sum() for k in range(4)), np.float32(0))


def in_one(a):
    total = np.float32(0)
    for x in a:
        total += x
    return total


def forgets_the_rest(a):
    return a[: len(a) // 4 * 4].sum()


def returns_nothing(a):
    a.sum()


RIGHT = [(cores, 13), (rings, in_lists), (latency, goes_on), (four_sums, every_fourth)]
WRONG = [
    (cores, 12.5, "too small"),
    (cores, 250, "too large"),
    (rings, one_ring, "for 2 rings"),
    (rings, ascending, "prefetcher"),
    (rings, one_long, "have"),
    (latency, begins_anew, "is 6.25 KiB"),
    (latency, once_around_first, "is 6.25 KiB"),
    (latency, seconds_of_a_call, "seconds of a step"),
    (four_sums, in_one, "one chain"),
    (four_sums, forgets_the_rest, "of 1 numbers"),
    (four_sums, returns_nothing, "got None"),
]
