"""Answers to the exercises of lesson 67, right and wrong."""

import itertools

import numpy as np

from cnnlab.lessons.lesson_67 import (  # isort: skip
    all_joules, best_clock, best_threads, challenge_clocks, diagnosis, joules_at, mean_watts,
)  # fmt: skip


def by_slope(serial, package, core):
    """Bisection: where one thread more begins to cost."""
    low, high = 1e-3, 1e5
    for _ in range(100):
        n = (low * high) ** 0.5
        slope = core * serial - package * (1 - serial) / n**2
        low, high = (low, n) if slope > 0 else (n, high)
    return low


def in_thirds(idle, dynamic, waits, deadline, high=1):
    """Ternary search: the energy first falls, then rises."""
    low = 1 / (deadline - waits)
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if joules_at(left, idle, dynamic, waits) < joules_at(right, idle, dynamic, waits):
            high = right
        else:
            low = left
    return low


def no_memory(idle, dynamic, waits, deadline):
    return float(np.clip((idle / (2 * dynamic)) ** (1 / 3), 1 / (deadline - waits), 1))


def no_deadline(idle, dynamic, waits, deadline):
    return in_thirds(idle, dynamic, waits, 1e3)


def no_limit(idle, dynamic, waits, deadline):
    return in_thirds(idle, dynamic, waits, deadline, high=3)


def deadline_without_memory(idle, dynamic, waits, deadline):
    return in_thirds(idle, dynamic, waits, deadline + waits)


def backwards(read, every, window):
    """Begins each run a window earlier than the last, as long as that is in the interval."""
    n = int(every / window + 0.5)
    return sum(read(-k * every / n) for k in range(n)) / n


def step_by_step(layers, choices, idle, dynamic, deadline):
    """All plans of the layers so far, the cheapest last."""
    plans = [()]
    for _ in layers:
        plans = [(*plan, f) for plan in plans for f in choices]
    costs = [(*all_joules(layers, plan, idle, dynamic), plan) for plan in plans]
    return min(cost for cost in costs if cost[1] <= deadline)[2]


def each_alone(layers, choices, idle, dynamic, deadline):
    return [
        min(choices, key=lambda f: (idle + dynamic * f**3) * (work / f + waits))
        for work, waits in layers
    ]


def one_clock(layers, choices, idle, dynamic, deadline):
    plans = [[f] * len(layers) for f in choices]
    right = [p for p in plans if all_joules(layers, p, idle, dynamic)[1] <= deadline]
    return min(right, key=lambda p: all_joules(layers, p, idle, dynamic)[0])


def no_idle(layers, choices, idle, dynamic, deadline):
    plans = itertools.product(choices, repeat=len(layers))
    right = [p for p in plans if all_joules(layers, p, idle, dynamic)[1] <= deadline]
    return min(right, key=lambda p: all_joules(layers, p, 0, dynamic)[0])


SPOTS = ["counter wrapped", "part not counted", "sampled in step", "idle power", "sound"]
RIGHT = [
    (best_threads, by_slope),
    (best_clock, in_thirds),
    (mean_watts, backwards),
    (diagnosis, SPOTS),
    (challenge_clocks, step_by_step),
]
WRONG = [
    (best_threads, lambda serial, package, core: 1 / serial, "best threads("),
    (best_threads, lambda serial, package, core: package * (1 - serial) / (core * serial), "best"),
    (best_threads, lambda serial, package, core: (package / core) ** 0.5, "best threads("),
    (best_threads, lambda serial, package, core: (package / core / serial) ** 0.5, "best threads("),
    (best_threads, lambda s, p, c: (c * s / (p * (1 - s))) ** 0.5, "raised TypeError"),
    (best_threads, lambda serial, package, core: round(by_slope(serial, package, core)), "best"),
    (best_clock, no_memory, "are enough"),
    (best_clock, no_deadline, "too late"),
    (best_clock, no_limit, "is no clock"),
    (best_clock, deadline_without_memory, "too late"),
    (best_clock, lambda *given: 1, "are enough"),
    (best_clock, lambda idle, dynamic, waits, deadline: 1 / (deadline - waits), "are enough"),
    (mean_watts, lambda read, every, window: read(0), "a period of"),
    (mean_watts, lambda read, *_: np.mean([read(k / 40) for k in range(4)]), "more than 3 runs"),
    (mean_watts, lambda read, every, window: (read(0) + read(every / 2)) / 2, "a period of"),
    (mean_watts, lambda read, e, w: np.mean([read(e * k) for k in range(round(e / w))]), "period"),
    (mean_watts, lambda read, e, w: np.median([read(w * k) for k in range(round(e / w))]), "a per"),
    (mean_watts, lambda read, e, w: np.mean([read(w * k / 2) for k in range(round(e / w))]), "per"),
    (diagnosis, ["part not counted", *SPOTS[1:]], "1 is not part not counted"),
    (diagnosis, [SPOTS[0], "sound", *SPOTS[2:]], "2 is not sound"),
    (diagnosis, [*SPOTS[:2], "idle power", *SPOTS[3:]], "3 is not idle power"),
    (diagnosis, [*SPOTS[:3], "sound", "sound"], "4 is not sound"),
    (diagnosis, [*SPOTS[:4], "sampled in step"], "5 is not sampled in step"),
    (challenge_clocks, each_alone, "too late"),
    (challenge_clocks, one_clock, "are enough"),
    (challenge_clocks, no_idle, "are enough"),
    (challenge_clocks, lambda layers, choices, *rest: [1.0] * len(layers), "are enough"),
    (challenge_clocks, lambda layers, choices, *rest: [0.5] * len(layers), "expected four of"),
]
