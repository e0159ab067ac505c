"""The exercises of lesson 54."""

import heapq

import numpy as np

from cnnlab.check import kinds


def as_aware(step) -> str:
    """What is wrong with a step along a stale gradient, in words; nothing if it is right."""
    rng = kinds.generator()
    for missed in (0, 1, 2, 9):
        start, gradient = rng.normal(size=(2, 8)).astype(np.float32)
        params, given = start.copy(), gradient.copy()
        step(params, given, 0.5, missed)
        if not np.array_equal(given, gradient):
            return "the gradient has changed: leave it as it is"
        if np.array_equal(params, start):
            return f"missed = {missed}: the parameters have not moved: change them in place"
        if not np.isfinite(params).all():
            return f"missed = {missed}: the parameters are no longer finite"
        taken = (start - params) @ gradient / (gradient @ gradient) / 0.5
        if not np.allclose(params, start - 0.5 / max(1, missed) * gradient, atol=1e-6):
            right = 1 / max(1, missed)
            return f"missed = {missed}: the step is {taken:.3g} of the full one, not {right:.3g}"
    return ""


SECONDS = ((1, 1, 1), (1, 1.1, 3.3), (1, 5, 1.7, 0.6), (2, 0.1))  # of a step, by worker


def as_waiting(may_go_on) -> str:
    """What is wrong with a rule that says who waits, in words; nothing if it is right.

    Workers at several speeds go by it, on a clock; and all that it says is compared.
    """
    for seconds in SECONDS:
        for staleness in (0, 1, 3):
            if wrong := governed(may_go_on, seconds, staleness):
                return f"{len(seconds)} workers, staleness {staleness}: {wrong}"
    return ""


def governed(may_go_on, seconds, staleness: int, n_gradients: int = 60) -> str:
    """What goes wrong where workers, who take so many seconds for a step, go by a rule."""
    clocks, seen = np.zeros((2, len(seconds)), int)
    busy, waiting, wrong = [(s, w) for w, s in enumerate(seconds)], [], ""
    heapq.heapify(busy)
    for _ in range(n_gradients):
        if not busy:
            return f"all wait for ever, at clocks {clocks.tolist()}"
        now, worker = heapq.heappop(busy)
        clocks[worker] += 1
        waiting = sorted([*waiting, worker])
        for w in list(waiting):
            missed = int(clocks.sum() - clocks[w] - seen[w])
            lead = int(clocks[w] - clocks.min())
            goes = bool(may_go_on(w, clocks.copy(), missed, staleness))
            if goes and lead > staleness:
                return f"worker {w} goes on with a lead of {lead} steps: clocks {clocks.tolist()}"
            if not goes and lead <= staleness:
                wrong = wrong or f"worker {w} waits, and need not: clocks {clocks.tolist()}"
            if goes:
                waiting.remove(w)
                seen[w] = clocks.sum() - clocks[w]
                heapq.heappush(busy, (now + seconds[w], w))
    return wrong


@kinds.formula(
    lambda rng: {
        "n_workers": int(rng.integers(1, 257)),
        "n_parameters": int(rng.integers(1, 1000)) * 840,
        "n_servers": int(rng.integers(1, 9)),
    },
    "What crosses the link of the only server, if there is one? Both ways count.",
    "A worker sends each server the part of its gradient whose parameters lie there.",
)
def through_a_server(n_workers, n_parameters, n_servers):
    """Four bytes for each number of each worker, in and out; servers share the parameters."""
    return 2 * 4 * n_workers * n_parameters / n_servers


@kinds.tested(
    as_aware,
    "A gradient that has missed ten others should move the parameters a tenth as far.",
    "What is 1 over missed, if nothing was missed? Such a gradient counts whole.",
)
def aware(params, gradient, rate, missed):
    """One that has missed n others steps at a rate n times smaller, a fresh one at the full."""
    params -= rate / max(1, missed) * gradient


@kinds.tested(
    as_waiting,
    "The bound is on the clocks of workers. How far may one be ahead of the slowest?",
    "Neither the others' speed nor the gradients missed matter: compare clocks, and only these.",
)
def may_go_on(worker, clocks, missed, staleness):
    """Clocks alone decide: however old gradients are, nobody goes on who leads by more than s."""
    return clocks[worker] - clocks.min() <= staleness
