"""Answers to the exercises of lesson 58, right and wrong."""

import math

import numpy as np

from cnnlab.lessons.lesson_58 import brackets, groups, promote


def always_an_allreduce(n, p, g, compute, allreduce):
    return math.ceil(n * g / p) * (compute / g + allreduce)


def by_logarithm(longest, eta):
    most = round(math.log(longest, eta))
    numbers = [-(-(most + 1) * eta**s // (s + 1)) for s in range(most + 1)]
    return [(numbers[s], longest // eta**s) for s in range(most + 1)][::-1]


def rounded_down(longest, eta):
    most = round(math.log(longest, eta))
    return [((most + 1) * eta**s // (s + 1), longest // eta**s) for s in range(most, -1, -1)]


def promoter(lowest=False, again=False, early=False, up=False, worst=False):
    def answer(rungs, promoted, eta):
        numbers = list(range(len(rungs) - 1))
        for k in numbers if lowest else numbers[::-1]:
            pairs = sorted(rungs[k].items(), key=lambda pair: pair[1] if worst else -pair[1])
            ranked = [trial for trial, _ in pairs if not early or trial not in promoted]
            for trial in ranked[: (len(pairs) + (eta - 1) * up) // eta]:
                if again or trial not in promoted:
                    return k, trial
        return None

    return answer


RIGHT = [
    (brackets, by_logarithm),
    (promote, promoter()),
    (promote, lambda *given: None if (got := promoter()(*given)) is None else np.array(got)),
]
WRONG = [
    (groups, always_an_allreduce, "groups("),
    (brackets, rounded_down, "longest 81"),
    (brackets, lambda longest, eta: by_logarithm(longest, eta)[::-1], "longest 81"),
    (promote, promoter(lowest=True), "expected"),
    (promote, lambda rungs, *given: promoter()(rungs[:3], *given), "expected"),
    (promote, promoter(again=True), "gone on before"),
    (promote, promoter(early=True), "may not"),
    (promote, promoter(up=True), "may not"),
    (promote, promoter(worst=True), "may not"),
]
