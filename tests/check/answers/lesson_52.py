"""Answers to the exercises of lesson 52, right and wrong."""

from math import ceil

from cnnlab.lessons.lesson_52 import micro_batches, rows, sharded_bytes, tasks, units


def all_forward_first(rank, size, n_micro):
    """GPipe: as fast, but it holds everything."""
    return [("F", i) for i in range(n_micro)] + [("B", i) for i in range(n_micro)]


def no_warm_up(rank, size, n_micro):
    """One micro-batch after the other: holds little, and everybody waits."""
    return [(kind, i) for i in range(n_micro) for kind in "FB"]


def last_ones_forgotten(rank, size, n_micro):
    first = min(size - rank, n_micro)
    result = [("F", i) for i in range(first)]
    for i in range(first, n_micro):
        result += [("B", i - first), ("F", i)]
    return result


def later_ranks_hold_more(rank, size, n_micro):
    first = min(rank + 1, n_micro)
    result = [("F", i) for i in range(first)]
    for i in range(n_micro):
        result += [("B", i)] + [("F", first + i)] * (first + i < n_micro)
    return result


RIGHT = [
    (
        units,
        lambda p, m, forward, backward: (
            m * (forward + backward) + (p - 1) * forward + (p - 1) * backward
        ),
    ),
    (micro_batches, lambda p, most: ceil((p - 1) / most - (p - 1))),
    (rows, lambda a, b, kernel, stride: (a * stride, max(a, b - 1) * stride + kernel * (b > a))),
    (sharded_bytes, lambda n, n_ranks: 12 * (n - n / n_ranks)),
]
WRONG = [
    (units, lambda p, m, forward, backward: m * (forward + backward), "too small"),
    (micro_batches, lambda p, most: int((p - 1) * (1 - most) / most), "too small"),
    (micro_batches, lambda p, most: (p - 1) / most, "too large"),
    (micro_batches, lambda p, most: int((p - 1) / most - (p - 1)) + 1, "too large"),
    (rows, lambda a, b, kernel, stride: (a, b), "rows(0, 1, kernel=3, stride=1): expected (0, 3)"),
    (rows, lambda a, b, kernel, stride: (a * stride, b * stride + kernel), "expected (0, 1)"),
    (rows, lambda a, b, kernel, stride: (a * stride, (b - 1) * stride + kernel), "as the rank has"),
    (tasks, all_forward_first, "rank 0 holds 5 micro-batches, expected 1"),
    (tasks, no_warm_up, "2 ranks, 4 micro-batches: takes 16 units, expected 10"),
    (tasks, last_ones_forgotten, "does B of micro-batch 0 0 times, expected once"),
    (tasks, later_ranks_hold_more, "expected an order that comes to an end"),
    (sharded_bytes, lambda n, n_ranks: 2 * 4 * n * (n_ranks - 1) / n_ranks, "too small"),
    (sharded_bytes, lambda n, n_ranks: 3 * n * (n_ranks - 1) / n_ranks, "too small"),
    (tasks, ..., "not yet answered"),
]
