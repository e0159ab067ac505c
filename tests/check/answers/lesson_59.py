"""Answers to the exercises of lesson 59, right and wrong."""

from math import inf

from cnnlab.lessons.lesson_59 import base, lies, scaling, times_faster

TEN = lies.model()


def instead(number, word):
    return [word if k == number else its for k, its in enumerate(TEN, 1)]


def by_sorting(seconds):
    alone = sorted((t, name) for (name, n), t in seconds.items() if n == 1)
    return alone[0][1] if alone else None


def fastest_of_all(seconds):
    return min(seconds, key=seconds.get)[0]


def slowest(seconds):
    alone = {name: t for (name, n), t in seconds.items() if n == 1}
    return max(alone, key=alone.get) if alone else None


def the_first(seconds):
    return next((name for name, n in seconds if n == 1), None)


def never_none(seconds):
    return by_sorting(seconds) or fastest_of_all(seconds)


def reached(curve, target):
    return next((n for n, accuracy in curve if accuracy >= target), inf)


def in_steps(base, other, target):
    a, b = reached(base[1], target), reached(other[1], target)
    return None if inf in (a, b) else a / b


def a_step(base, other, target):
    return base[0] / other[0]


def upside_down(base, other, target):
    found = times_faster.model()(base, other, target)
    return found and 1 / found


def infinite(base, other, target):
    a, b = (s * reached(curve, target) for s, curve in (base, other))
    return a / b if b < inf else 0.0


def at_the_end(base, other, target):
    """Only who is there at the end counts, and so one that has forgotten is not seen."""
    if min(base[1][-1][1], other[1][-1][1]) < target:
        return None
    return times_faster.model()(base, other, target)


def by_speedup(runs):
    """The same efficiencies, from speedups in images a second."""
    runs_by = {p: (batch, seconds) for p, batch, seconds in runs}
    first = min(runs_by)
    speed = {p: batch / seconds for p, (batch, seconds) in runs_by.items()}
    return scaling.model()(runs)[0], [speed[p] / speed[first] / (p / first) for p, *_ in runs]


def as_if_strong(runs):
    p0, _, t0 = min(runs)
    return scaling.model()(runs)[0], [t0 * p0 / (p * t) for p, _, t in runs]


def over_the_first(runs):
    word, found = scaling.model()(runs)
    return word, [each / found[0] for each in found]


def always_strong(runs):
    return "strong", scaling.model()(runs)[1]


def never_neither(runs):
    word, found = scaling.model()(runs)
    return ("weak" if word == "neither" else word), found


RIGHT = [
    (lies, TEN),
    (lies, tuple(TEN)),
    (base, by_sorting),
    (times_faster, lambda base, other, target: times_faster.model()(base, other, target)),
    (scaling, by_speedup),
]
WRONG = [
    (lies, instead(1, "picked size"), "9 of 10 right; 1 is not picked size"),
    (lies, instead(6, "extrapolation"), "who has so many cores"),
    (lies, instead(8, "one seed"), "where does the axis begin"),
    (lies, instead(8, ...), "9 of 10 right"),
    (lies, TEN[:9], "expected 10 of"),
    (lies, instead(2, "a lie"), "expected 10 of"),
    (base, fastest_of_all, "the base is"),
    (base, slowest, "the base is"),
    (base, the_first, "the base is"),
    (base, never_none, "none ran on one rank"),
    (times_faster, in_steps, "expected"),
    (times_faster, a_step, "expected"),
    (times_faster, upside_down, "expected"),
    (times_faster, infinite, "expected None"),
    (times_faster, at_the_end, "got None"),
    (scaling, as_if_strong, "efficiencies"),
    (scaling, over_the_first, "efficiencies"),
    (scaling, always_strong, "not 'strong'"),
    (scaling, never_neither, "the scaling is neither"),
]
