"""Answers to the exercises of lesson 59, right and wrong."""

from math import inf

import numpy as np

from cnnlab.lessons.lesson_59 import forecast, lies, superstep_model, times_faster

ELEVEN = lies.model()


def instead(number, word):
    return [word if k == number else right for k, right in enumerate(ELEVEN, 1)]


def only_sent(steps, latency, bandwidth):
    return sum(max(w) + s.sum(1).max() / bandwidth + latency for w, s in steps)


def on_average(steps, latency, bandwidth):
    return superstep_model.model()([(w * 0 + w.mean(), s) for w, s in steps], latency, bandwidth)


def fitted(ranks, seconds, n_ranks):
    """By normal equations."""
    table = np.array([[1, 1 / p, np.log2(p)] for p in ranks])
    a, b, c = np.linalg.solve(table.T @ table, table.T @ np.array(seconds))
    return a + b / n_ranks + c * np.log2(n_ranks)


def a_line(ranks, seconds, n_ranks):
    return float(np.polyval(np.polyfit(ranks, seconds, 1), n_ranks))


def reached(curve, target, more=0):
    return next((n for n, accuracy in curve if accuracy >= target + more), inf)


def in_steps(base, other, target):
    a, b = reached(base[1], target), reached(other[1], target)
    return None if inf in (a, b) else a / b


def infinite(base, other, target):
    a, b = (s * reached(curve, target) for s, curve in (base, other))
    return a / b if b < inf else 0.0


def at_the_end(base, other, target):
    """Only who is there at the end counts, and so one that has forgotten is not seen."""
    if min(base[1][-1][1], other[1][-1][1]) < target:
        return None
    return times_faster.model()(base, other, target)


def only_above(base, other, target):
    a, b = (s * reached(curve, target, 1e-9) for s, curve in (base, other))
    return None if inf in (a, b) else a / b


RIGHT = [
    (lies, ELEVEN),
    (lies, tuple(ELEVEN)),
    (forecast, fitted),
    (times_faster, lambda base, other, target: times_faster.model()(base, other, target)),
]
WRONG = [
    (lies, instead(1, "outdated base"), "10 of 11 right; 1 is not outdated base"),
    (lies, instead(6, "tuning left out"), "how does it go on"),
    (lies, instead(8, "large inputs"), "how many images"),
    (lies, instead(11, "training accuracy"), "do both numbers come from one training"),
    (lies, instead(5, ...), "10 of 11 right"),
    (lies, ELEVEN[:6], "expected 11 of"),
    (lies, instead(2, "a lie"), "expected 11 of"),
    (superstep_model, only_sent, "expected"),
    (superstep_model, on_average, "expected"),
    (forecast, a_line, "log2 P at 64: expected"),
    (times_faster, in_steps, "expected"),
    (times_faster, only_above, "expected"),
    (times_faster, infinite, "expected None"),
    (times_faster, at_the_end, "got None"),
]
