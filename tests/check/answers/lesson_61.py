"""Answers to the exercises of lesson 61, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_61 import challenge_fronts, diagnosis, leaky


def by_sech(dh, z, before, k):
    dz = dh / np.cosh(z) ** 2
    return k * dz, dh - k * dh


def in_place(dh, z, before, k):
    dh *= k
    return dh * (1 - np.tanh(z) ** 2), dh / k * (1 - k)


def by_diagonals(layers, steps, n_threads):
    """Diagonal by diagonal, and what a short front has room for from the next one."""
    done, fronts = set(), []
    order = sorted(np.ndindex(layers, steps), key=lambda task: (sum(task), task[1]))
    while len(done) < layers * steps:
        ready = [
            (layer, t)
            for layer, t in order
            if (layer, t) not in done
            and (layer == 0 or (layer - 1, t) in done)
            and (t == 0 or (layer, t - 1) in done)
        ]
        fronts.append(ready[:n_threads])
        done.update(fronts[-1])
    return fronts


def one_at_a_time(layers, steps, n_threads):
    return [[task] for task in np.ndindex(layers, steps)]


def whole_diagonals(layers, steps, n_threads):
    """As many threads as a diagonal is long."""
    tasks = list(np.ndindex(layers, steps))
    return [[task for task in tasks if sum(task) == k] for k in range(layers + steps - 1)]


def cut_diagonals(layers, steps, n_threads):
    """Diagonals cut into fronts, without taking more from the next."""
    result = []
    for diagonal in whole_diagonals(layers, steps, n_threads):
        starts = range(0, len(diagonal), n_threads)
        result += [diagonal[k : k + n_threads] for k in starts]
    return result


def by_time(layers, steps, n_threads):
    """All layers of a time step at once."""
    tasks = [(layer, t) for t in range(steps) for layer in range(layers)]
    return [tasks[k : k + n_threads] for k in range(0, len(tasks), n_threads)]


def without_the_last(layers, steps, n_threads):
    return by_diagonals(layers, steps, n_threads)[:-1]


def twice(layers, steps, n_threads):
    return [*by_diagonals(layers, steps, n_threads), [(0, 0)]]


SPOTS = [
    "target not shifted", "sound", "gradient not summed", "state not carried", "test text seen",
]  # fmt: skip
RIGHT = [(leaky, by_sech), (diagnosis, SPOTS), (challenge_fronts, by_diagonals)]
WRONG = [
    (leaky, lambda dh, z, before, k: (dh * (1 - np.tanh(z) ** 2), dh * (1 - k)), "dz, k"),
    (leaky, lambda dh, z, before, k: (dh * k * (1 - z**2), dh * (1 - k)), "dz, k"),
    (leaky, lambda dh, z, before, k: (dh * k * np.tanh(z), dh * (1 - k)), "dz, k"),
    (leaky, lambda dh, z, before, k: (dh * k / np.cosh(z) ** 2, dh), "dbefore, k"),
    (leaky, lambda dh, z, before, k: (dh * k / np.cosh(z) ** 2, dh * k), "dbefore, k"),
    (leaky, lambda dh, z, before, k: (dh * k / np.cosh(z) ** 2, (1 - k) * before), "dbefore, k"),
    (leaky, lambda dh, z, before, k: dh * k / np.cosh(z) ** 2, "expected a tuple"),
    (leaky, in_place, "are changed"),
    (diagnosis, ["sound", *SPOTS[1:]], "1 is not sound"),
    (diagnosis, [SPOTS[0], "gradient not summed", *SPOTS[2:]], "2 is not gradient not summed"),
    (diagnosis, [*SPOTS[:2], "state not carried", *SPOTS[3:]], "3 is not state not carried"),
    (diagnosis, [*SPOTS[:3], "gradient not summed", SPOTS[4]], "4 is not gradient not summed"),
    (diagnosis, [*SPOTS[:4], "sound"], "5 is not sound"),
    (challenge_fronts, one_at_a_time, "are enough"),
    (challenge_fronts, whole_diagonals, "different tasks"),
    (challenge_fronts, cut_diagonals, "are enough"),
    (challenge_fronts, by_time, "before what it needs"),
    (challenge_fronts, without_the_last, "are missing"),
    (challenge_fronts, twice, "comes twice"),
]
