"""Answers to the exercises of lesson 64, right and wrong."""

import itertools
import math

from cnnlab.lessons.lesson_64 import challenge_climber, chance_of_none, diagnosis, neighbours


def by_draws(schedules, good, trials):
    """The chance that each draw misses, too, multiplied."""
    return math.prod(1 - good / (schedules - n) for n in range(trials))


def by_distance(schedule, knobs):
    """All schedules, of which those one step away are kept."""
    result = []
    for other in itertools.product(*knobs.values()):
        steps = 0
        for a, b, values in zip(schedule, other, knobs.values(), strict=True):
            away = abs(values.index(a) - values.index(b))
            steps += min(away, 1) if isinstance(a, str) else away
        if steps == 1:
            result.append(other)
    return result


def names_in_order(schedule, knobs):
    """An order of loops as if it were a number."""
    result = []
    for i, (value, values) in enumerate(zip(schedule, knobs.values(), strict=True)):
        at = values.index(value)
        near = [values[k] for k in (at - 1, at + 1) if 0 <= k < len(values)]
        result += [(*schedule[:i], each, *schedule[i + 1 :]) for each in near]
    return result


def around(schedule, knobs):
    """At the end of a tuple it goes on at the beginning."""
    result = []
    for i, (value, values) in enumerate(zip(schedule, knobs.values(), strict=True)):
        at = values.index(value)
        near = {values[at - 1], values[(at + 1) % len(values)]} - {value}
        near = set(values) - {value} if isinstance(value, str) else near
        result += [(*schedule[:i], each, *schedule[i + 1 :]) for each in near]
    return result


def any_value(schedule, knobs):
    return [
        (*schedule[:i], each, *schedule[i + 1 :])
        for i, values in enumerate(knobs.values())
        for each in values
        if each != schedule[i]
    ]


def from_hill_to_hill(knobs, rng):
    """Untried neighbours of the best so far; where there are none, any other."""
    left, rates = list(itertools.product(*knobs.values())), {}
    while left:
        best = max(rates, key=rates.get, default=None)
        near = [each for each in left if best and each in by_distance(best, knobs)]
        chosen = (near or left)[rng.integers(len(near or left))]
        left.remove(chosen)
        rates[chosen] = yield chosen


def in_order(knobs, rng):
    left = list(itertools.product(*knobs.values()))
    while left:
        yield left.pop(0)


def stops_on_top(knobs, rng):
    rates, best = {}, (0, 0)
    rates[best] = yield best
    while True:
        near = [s for s in by_distance(best, knobs) if s not in rates]
        if not near:
            return
        rates[near[0]] = yield near[0]
        best = max(rates, key=rates.get)


def again_and_again(knobs, rng):
    while True:
        yield tuple(values[0] for values in knobs.values())


FAULTS = ["own history", "winner's curse", "failures forgotten", "one seed", "sound"]
RIGHT = [
    (chance_of_none, by_draws),
    (neighbours, by_distance),
    (diagnosis, FAULTS),
    (challenge_climber, from_hill_to_hill),
]
WRONG = [
    (chance_of_none, lambda schedules, good, trials: (1 - good / schedules) ** trials, "chance of"),
    (chance_of_none, lambda schedules, good, trials: 1 - trials * good / schedules, "chance of"),
    (chance_of_none, lambda **numbers: 1 - by_draws(**numbers), "chance of none("),
    (neighbours, names_in_order, "is missing"),
    (neighbours, around, "is no neighbour"),
    (neighbours, any_value, "is no neighbour"),
    (neighbours, lambda s, knobs: [*by_distance(s, knobs), s], "no neighbour of its own"),
    (neighbours, lambda s, knobs: 2 * by_distance(s, knobs), "twice"),
    (neighbours, lambda s, knobs: set(by_distance(s, knobs)), "a list of tuples"),
    (diagnosis, ["one seed", *FAULTS[1:]], "1 is not one seed"),
    (diagnosis, [FAULTS[0], "sound", *FAULTS[2:]], "2 is not sound"),
    (diagnosis, [*FAULTS[:2], "sound", *FAULTS[3:]], "3 is not sound"),
    (diagnosis, [*FAULTS[:3], "sound", FAULTS[4]], "4 is not sound"),
    (diagnosis, [*FAULTS[:4], "own history"], "5 is not own history"),
    (challenge_climber, in_order, "60 are enough"),
    (challenge_climber, stops_on_top, "stops after"),
    (challenge_climber, again_and_again, "asked for twice"),
    (challenge_climber, lambda knobs, rng: iter([]), "stops after 0"),
]
