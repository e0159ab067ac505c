"""Answers to the exercises of lesson 68, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_68 import (  # isort: skip
    STAYS, challenge_shape, cycles, diagnosis, fewest, straight_feed, without_gaps,
)  # fmt: skip


def by_cycle(image, K, places):
    """Cycle after cycle: which tap is due in each lane."""
    lanes = len(places)
    result = np.full((K * K + lanes - 1, lanes), np.nan)
    for t in range(len(result)):
        for lane, (p, q) in enumerate(places):
            if 0 <= t - lane < K * K:
                k, l = divmod(t - lane, K)
                result[t, lane] = image[p + k, q + l]
    return result


def unskewed(image, K, places):
    return np.array([image[p : p + K, q : q + K].ravel() for p, q in places]).T


def down_first(image, K, places):
    return by_cycle(image.T, K, [(q, p) for p, q in places])


def ends_late(image, K, places):
    return np.vstack([by_cycle(image, K, places), np.full((1, len(places)), np.nan)])


def upside_down(image, K, places):
    return by_cycle(image, K, places)[:, ::-1]


def all_in_each(R, C, steps, tiles):
    """The first tile, then what each tile adds."""
    return 2 * R + C + steps - 2 + sum(steps if steps > R else R for _ in range(1, tiles))


def searched(products, n):
    best = None
    for C in range(n, 0, -1):
        for R in range(n // C, 0, -1):
            total = sum(min(cycles(*sizes, s, R, C) for s in STAYS) for sizes in products)
            if best is None or total < best[0]:
                best = total, R, C
    return best[1:]


def filled(products, n):
    """Of each number of rows, as many columns as there is room for."""
    shapes = [(R, n // R) for R in range(1, n + 1)]
    return min(shapes, key=lambda s: fewest(products, *s))


def square(products, n):
    return int(n**0.5), int(n**0.5)


def one_dataflow(products, n):
    """One dataflow for all products."""
    shapes = [(R, n // R) for R in range(1, n + 1)]
    return min(shapes, key=lambda s: sum(cycles(*sizes, "output", *s) for sizes in products))


SPOTS = ["drain forgotten", "no skew", "rounded down", "zeros counted", "sound", "sound"]
RIGHT = [
    (straight_feed, by_cycle),
    (without_gaps, all_in_each),
    (diagnosis, SPOTS),
    (challenge_shape, searched),
]
WRONG = [
    (straight_feed, unskewed, "got"),
    (straight_feed, down_first, "cycle"),
    (straight_feed, ends_late, "expected"),
    (straight_feed, upside_down, "lane"),
    (straight_feed, lambda *given: np.nan_to_num(by_cycle(*given)), "expected nan"),
    (without_gaps, lambda R, C, steps, tiles: tiles * (2 * R + C + steps - 2), "without gaps("),
    (without_gaps, lambda R, C, steps, tiles: 2 * R + C + tiles * steps - 2, "without gaps("),
    (without_gaps, lambda R, C, steps, tiles: R + tiles * (steps + R + C - 2), "without gaps("),
    (without_gaps, lambda R, C, steps, tiles: tiles * max(steps, R) + R + C - 2, "without gaps("),
    (diagnosis, ["sound", *SPOTS[1:]], "1 is not sound"),
    (diagnosis, [SPOTS[0], "drain forgotten", *SPOTS[2:]], "2 is not drain forgotten"),
    (diagnosis, [*SPOTS[:2], "zeros counted", *SPOTS[3:]], "3 is not zeros counted"),
    (diagnosis, [*SPOTS[:3], *SPOTS[4:], "sound"], "4 is not sound"),
    (diagnosis, [*SPOTS[:4], "rounded down", "sound"], "5 is not rounded down"),
    (challenge_shape, square, "are enough"),
    (challenge_shape, filled, "are enough"),
    (challenge_shape, one_dataflow, "are enough"),
    (challenge_shape, lambda products, n: (n, n), "are not between"),
    (challenge_shape, lambda products, n: (n, 1), "are enough"),
    (challenge_shape, lambda products, n: (0, n), "are not between"),
]
