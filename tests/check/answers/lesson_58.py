"""Answers to the exercises of lesson 58, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_58 import draws, epochs, exploit, promote


def by_rank(scores, me, rng):
    rank = sum(score < scores[me] for score in scores)
    n = len(scores)
    if rank >= n // 5:
        return me
    best = sorted(range(n), key=lambda k: scores[k])[n - n // 5 :]
    return best[int(rng.integers(len(best)))]


def always_the_best(scores, me, rng):
    return int(np.argmax(scores)) if by_rank(scores, me, rng) != me else me


def upside_down(scores, me, rng):
    order, few = np.argsort(scores), len(scores) // 5
    return rng.choice(order[:few]) if me in order[-few:] else me


def copies_the_worst(scores, me, rng):
    order, few = np.argsort(scores), len(scores) // 5
    return rng.choice(order[:few]) if me in order[:few] else me


def everybody(scores, me, rng):
    return rng.choice(np.argsort(scores)[-(len(scores) // 5) :])


def sorts_in_place(scores, me, rng):
    scores.sort()
    return me


def promoter(lowest=False, again=False, up=False, worst=False):
    def answer(told, promoted, eta):
        numbers = list(range(len(told) - 1))
        for k in numbers if lowest else numbers[::-1]:
            ranked = sorted(told[k].items(), key=lambda one: one[1] if worst else -one[1])
            few = (len(ranked) + (eta - 1) * up) // eta
            for trial, _ in ranked[:few]:
                if again or trial not in promoted:
                    return k, trial
        return None

    return answer


def with_the_last_rung(told, promoted, eta):
    for k in reversed(range(len(told))):
        for trial in sorted(told[k], key=told[k].get)[::-1][: len(told[k]) // eta]:
            if trial not in promoted:
                return k, trial
    return None


def notes_it(told, promoted, eta):
    found = promoter()(told, promoted, eta)
    if found:
        promoted.add(found[1])
    return found


def whole_trainings(n, first, eta, rungs):
    total = 0
    for _ in range(rungs):
        total, n, first = total + n * first, n // eta, first * eta
    return total


def without_rounding(n, first, eta, rungs):
    return n * first + sum(n / eta**k * (eta - 1) * first * eta ** (k - 1) for k in range(1, rungs))


def summed(n, first, eta, rungs):
    had, at, total = 0, first, 0
    for _ in range(rungs):
        total, had, at, n = total + n * (at - had), at, at * eta, n // eta
    return total


RIGHT = [
    (draws, 59),
    (epochs, summed),
    (exploit, by_rank),
    (promote, promoter()),
]
WRONG = [
    (draws, 58, "too small"),
    (draws, 20, "too small"),
    (draws, 60, "too large"),
    (epochs, whole_trainings, "epochs("),
    (epochs, without_rounding, "epochs("),
    (exploit, always_the_best, "any of the"),
    (exploit, upside_down, "copies"),
    (exploit, copies_the_worst, "one of the worst fifth"),
    (exploit, everybody, "not among the worst"),
    (exploit, sorts_in_place, "scores are changed"),
    (promote, promoter(lowest=True), "lowest rung"),
    (promote, promoter(again=True), "promoted already"),
    (promote, promoter(up=True), "rounds"),
    (promote, promoter(worst=True), "promotes the worst"),
    (promote, with_the_last_rung, "it differs"),
    (promote, notes_it, "is changed"),
]
