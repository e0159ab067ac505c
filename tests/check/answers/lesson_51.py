"""Answers to the exercises of lesson 51: right ones, and wrong ones with a word of the verdict."""

import functools
import math

import numpy as np

from cnnlab.lessons.lesson_51 import (
    against_greed,
    fewest_pieces,
    gradient_in_pieces,
    recurrence,
    what_differs,
)


def planner(fits, combine=lambda rest, seconds, workspace: rest + seconds, first=0):
    """A planner by the recurrence, with what is allowed and what adds up as given.

    The first micro-batch is a change, too, if `first` is 1.
    """

    def plan(times, workspaces, n_images, cap, change):
        @functools.cache
        def least(n, last):
            results = [0.0 if not n else math.inf]
            for m, seconds in times[last].items():
                if m <= n and fits(workspaces[last][m], cap, m, n, n_images):
                    before = [least(n - m, a) + change * (a != last) for a in times]
                    rest = min(before) if n > m else change * first
                    results.append(combine(rest, seconds, workspaces[last][m]))
            return min(results)

        return min(least(n_images, last) for last in times)

    return plan


def without_the_change(times, workspaces, n_images, cap, change):
    return planner(lambda workspace, cap, m, n, whole: workspace <= cap)(
        times, workspaces, n_images, cap, 0
    )


def last_way_only(times, workspaces, n_images, cap, change):  # T(n) and one way that reaches it
    best = [(0.0, None)]
    for n in range(1, n_images + 1):
        rows = [(math.inf, None)]
        for a, by_size in times.items():
            for m, seconds in by_size.items():
                if m <= n and workspaces[a][m] <= cap:
                    rest, before = best[n - m]
                    rows.append((rest + seconds + change * (before not in (a, None)), a))
        best.append(min(rows, key=lambda row: row[0]))
    return best[-1][0]


def workspaces_add_up(times, workspaces, n_images, cap, change):
    @functools.cache
    def least(left, room):
        fits = [
            seconds + least(left - size, room - workspaces[name][size])
            for name in times
            for size, seconds in times[name].items()
            if size <= left and workspaces[name][size] <= room
        ]
        return min(fits, default=math.inf) if left else 0.0

    return least(n_images, cap)


def greed(times, workspaces, n_images, cap, change):
    seconds = 0.0
    costs = [(t / m, m, t) for a in times for m, t in times[a].items() if workspaces[a][m] <= cap]
    for _, m, t in sorted(costs):
        seconds += n_images // m * t
        n_images %= m
    return math.inf if n_images else seconds


def pieces_by_search(times, n_images, noise):
    @functools.cache
    def costs(left):  # the least seconds by the number of pieces
        result = {} if left else {0: 0.0}
        for m, seconds in times.items():
            for k, rest in costs(left - m).items() if m <= left else ():
                result[k + 1] = min(result.get(k + 1, math.inf), rest + seconds)
        return result

    all_costs = costs(n_images)
    most = (1 + noise) * min(all_costs.values())
    return min(k for k, seconds in all_costs.items() if seconds <= most)


def without_the_rest(mean_gradient, x, y, most):
    total = 0
    for first in range(0, len(x) - most + 1, most):
        total = total + most * mean_gradient(x[first : first + most], y[first : first + most])
    return total / len(x)


def the_last(mean_gradient, x, y, most):  # as of a kernel that writes over its output
    for first in range(0, len(x), most):
        part = mean_gradient(x[first : first + most], y[first : first + most])
    return part


def all_at_once(mean_gradient, x, y, most):
    return mean_gradient(x, y)


def mean_of_means(mean_gradient, x, y, most):
    pieces = [slice(first, first + most) for first in range(0, len(x), most)]
    return np.mean([mean_gradient(x[some], y[some]) for some in pieces], axis=0)


def sum_of_means(mean_gradient, x, y, most):
    return mean_of_means(mean_gradient, x, y, most) * -(-len(x) // most)


def with_weights(mean_gradient, x, y, most):
    pieces = [slice(first, first + most) for first in range(0, len(x), most)]
    weights = [len(x[some]) for some in pieces]
    return np.average([mean_gradient(x[s], y[s]) for s in pieces], axis=0, weights=weights)


RIGHT = [
    (fewest_pieces, pieces_by_search),
    (what_differs, "mean and variance"),
    (recurrence, planner(lambda workspace, cap, m, n, whole: workspace <= cap)),
    (against_greed, lambda: ({1: 10.0, 5: 11.0, 7: 14.0}, 10)),
    (gradient_in_pieces, with_weights),
    (against_greed, lambda: ({np.int64(1): 10.0, np.int64(5): 11.0, np.int64(7): 14.0}, 10)),
]  # fmt: skip
WRONG = [
    (fewest_pieces, lambda times, n_images, noise: -(-n_images // max(times)), "expected"),
    (fewest_pieces, lambda times, n_images, noise: pieces_by_search(times, n_images, 0),
        "expected"),
    (fewest_pieces, lambda times, n_images, noise: pieces_by_search(times, n_images, math.inf),
        "expected"),
    (what_differs, "the sum of gradients", "depends on the other images"),
    (recurrence, planner(lambda workspace, cap, m, n, whole: True), "expected"),  # no cap
    (recurrence, planner(lambda workspace, cap, m, n, whole: workspace < cap), "expected"),
    (recurrence, planner(lambda workspace, cap, m, n, whole: workspace <= cap and m == whole),
        "expected"),  # the whole batch only
    (recurrence, planner(lambda workspace, cap, m, n, whole: workspace <= cap,
        lambda rest, seconds, workspace: max(rest, seconds)), "expected"),
    (recurrence, planner(lambda workspace, cap, m, n, whole: workspace <= cap,
        lambda rest, seconds, workspace: rest + workspace), "expected"),
    (recurrence, planner(lambda workspace, cap, m, n, whole: workspace <= cap, first=1),
        "expected"),
    (recurrence, without_the_change, "expected"),
    (recurrence, last_way_only, "expected"),
    (recurrence, workspaces_add_up, "expected"),
    (recurrence, greed, "expected"),
    (against_greed, lambda: ({1: 1.0, 2: 1.5, 4: 2.0}, 8), "no plan takes less"),
    (against_greed, lambda: ({2: 1.0, 4: 2.0}, 5), "images are left"),
    (against_greed, lambda: ({1: 0.0, 3: 3.0}, 6), "expected positive seconds"),
    (gradient_in_pieces, without_the_rest, "a wrong gradient"),
    (gradient_in_pieces, the_last, "a wrong gradient"),
    (gradient_in_pieces, mean_of_means, "a wrong gradient"),
    (gradient_in_pieces, sum_of_means, "a wrong gradient"),
    (gradient_in_pieces, all_at_once, "a micro-batch of"),
]  # fmt: skip
