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


def planner(fits, combine=lambda rest, seconds, workspace: rest + seconds):
    """A planner by the recurrence, with what is allowed and what adds up as given."""

    def plan(times, workspaces, n_images, cap):
        least = [0.0] + [math.inf] * n_images
        for n in range(1, n_images + 1):
            for name, by_size in times.items():
                for m, seconds in by_size.items():
                    if m <= n and fits(workspaces[name][m], cap, m, n, n_images):
                        result = combine(least[n - m], seconds, workspaces[name][m])
                        least[n] = min(least[n], result)
        return least[-1]

    return plan


def workspaces_add_up(times, workspaces, n_images, cap):
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


def greed(times, workspaces, n_images, cap):
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


def without_the_rest(kernel, x, dz, dw, most):
    part, total = np.empty_like(dw), 0
    for first in range(0, len(x) - most + 1, most):
        kernel(x[first : first + most], dz[first : first + most], part)
        total = total + part
    dw[:] = total


def never_cleared(kernel, x, dz, dw, most):
    part = np.empty_like(dw)
    for first in range(0, len(x), most):
        kernel(x[first : first + most], dz[first : first + most], part)
        dw += part


def all_at_once(kernel, x, dz, dw, most):
    kernel(x, dz, dw)


def with_a_list(kernel, x, dz, dw, most):
    parts = []
    for first in range(0, len(x), most):
        parts.append(np.empty_like(dw))
        kernel(x[first : first + most], dz[first : first + most], parts[-1])
    np.sum(parts, axis=0, out=dw)


RIGHT = [
    (fewest_pieces, pieces_by_search),
    (what_differs, "mean and variance"),
    (recurrence, planner(lambda workspace, cap, m, n, whole: workspace <= cap)),
    (against_greed, lambda: ({1: 10.0, 5: 11.0, 7: 14.0}, 10)),
    (against_greed, lambda: ({np.int64(1): 10.0, np.int64(5): 11.0, np.int64(7): 14.0}, 10)),
    (gradient_in_pieces, with_a_list),
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
    (recurrence, workspaces_add_up, "expected"),
    (recurrence, greed, "expected"),
    (against_greed, lambda: ({1: 1.0, 2: 1.5, 4: 2.0}, 8), "no plan takes less"),
    (against_greed, lambda: ({2: 1.0, 4: 2.0}, 5), "images are left"),
    (against_greed, lambda: ({1: 0.0, 3: 3.0}, 6), "expected positive seconds"),
    (gradient_in_pieces, without_the_rest, "a wrong gradient"),
    (gradient_in_pieces, never_cleared, "a wrong gradient"),
    (gradient_in_pieces, all_at_once, "a micro-batch of"),
]  # fmt: skip
