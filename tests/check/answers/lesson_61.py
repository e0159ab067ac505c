"""Answers to the exercises of lesson 61, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_61 import challenge_fronts, diagnosis, leaky


def by_states(dh, h, z, W, k, depth):
    """Part by part, with the gradient of the state before beside that of z."""
    dz = np.zeros_like(z)
    for first in range(0, len(z), depth):
        later = np.zeros_like(h[0])
        for t in reversed(range(first, min(first + depth, len(z)))):
            later += dh[t]
            dz[t] = k * later / np.cosh(z[t]) ** 2
            later = dz[t] @ W.T + later * (1 - k)
    return dz, np.einsum("tbi,tbj->ij", h[:-1], dz)


def wrongly(state=0, past=1, turned=True, slope=1, kept=True, cut=0, sign=-1):
    """The loop with one line wrong."""

    def back(dh, h, z, W, k, depth):
        dz, dW, later = np.empty_like(z), np.zeros_like(W), 0
        for t in range(len(z))[::sign]:
            reached = dh[t] + later
            dz[t] = reached * k**slope * (1 - np.tanh(z[t]) ** 2)
            dW += h[t + state].T @ dz[t]
            later = dz[t] @ (W.T if turned else W) + past * (1 - k) * (reached if kept else dh[t])
            later = later if cut is None or (t + cut) % depth else 0
        return dz, dW

    return back


def in_place(dh, h, z, W, k, depth):
    for t in reversed(range(1, len(z))):
        if t % depth:
            dh[t - 1] += dh[t] * (1 - k) + dh[t] * k / np.cosh(z[t]) ** 2 @ W.T
    dz = dh * k / np.cosh(z) ** 2
    return dz, np.einsum("tbi,tbj->ij", h[:-1], dz)


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
RIGHT = [(leaky, by_states), (diagnosis, SPOTS), (challenge_fronts, by_diagonals)]
WRONG = [
    (leaky, wrongly(state=1), "dW, depth 6"),
    (leaky, wrongly(past=0), "dz, depth 6"),
    (leaky, wrongly(turned=False), "dz, depth 6"),
    (leaky, wrongly(slope=0), "dz, depth 6"),
    (leaky, wrongly(kept=False), "dz, depth 6"),
    (leaky, wrongly(cut=None), "dz, depth 2"),
    (leaky, wrongly(cut=1), "dz, depth"),
    (leaky, wrongly(sign=1), "dz, depth"),
    (leaky, lambda dh, h, z, W, k, depth: by_states(dh, h, z, W, k, depth)[0], "expected a tuple"),
    (leaky, lambda dh, h, z, W, k, depth: by_states(dh, h, z, W, k, len(z)), "dz, depth 2"),
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
