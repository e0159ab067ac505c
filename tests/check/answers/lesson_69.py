"""Answers to the exercises of lesson 69, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_69 import challenge_choose, diagnosis, factorised, in_context


def by_matrix(edges, start, distance):
    """The nodes that a power of the adjacency matrix reaches."""
    n = 1 + max([start, *np.ravel(edges).astype(int)])
    linked = np.eye(n)
    for a, b in edges:
        linked[a, b] = linked[b, a] = 1
    row = np.linalg.matrix_power(linked, distance)[start]
    return {int(k) for k in np.flatnonzero(row)} - {start}


def forwards(edges, start, distance):
    """Follows edges from their first end to their second only."""
    reached = {start}
    for _ in range(distance):
        reached |= {b for a, b in edges if a in reached}
    return reached - {start}


def with_itself(edges, start, distance):
    return by_matrix(edges, start, distance) | {start}


def exactly_so_far(edges, start, distance):
    return by_matrix(edges, start, distance) - by_matrix(edges, start, distance - 1)


def all_reached(edges, start, distance):
    return by_matrix(edges, start, len(edges))


def factors(seen, k, dims, power=0.75, shift=True, root=0.5, least=0.0):
    noise = seen.sum(0) ** power / (seen.sum(0) ** power).sum()
    expected = (k if shift else 1) * np.outer(seen.sum(1), noise)
    with np.errstate(divide="ignore"):
        pmi = np.maximum(np.log(seen / expected), least)
    left, size, _ = np.linalg.svd(pmi)
    return (left * size**root)[:, :dims]


def by_counts(seen, k, dims):
    left, size, _ = np.linalg.svd(seen)
    return (left * size**0.5)[:, :dims]


def nearest_times(x, log_times, new, n=3):
    """All distances at once."""
    far = np.linalg.norm(new[:, None] - x, axis=2)
    near = np.argsort(far, axis=1)[:, :n]
    return log_times[near].mean(1).argmin(1)


def by_votes(x, log_times, new):
    """The label that most of the three have."""
    far = np.linalg.norm(new[:, None] - x, axis=2)
    labels = log_times.argmin(1)[np.argsort(far, axis=1)[:, :3]]
    return [int(np.bincount(each).argmax()) for each in labels]


def by_mean_time(x, log_times, new):
    return nearest_times(x, np.exp(log_times), new)


SPOTS = ["leak", "sound", "no baseline", "chance", "wrong measure", "leak"]
RIGHT = [
    (in_context, by_matrix),
    (factorised, factors),
    (diagnosis, SPOTS),
    (challenge_choose, nearest_times),
]
WRONG = [
    (in_context, forwards, "are missing"),
    (in_context, with_itself, "are too many"),
    (in_context, exactly_so_far, "are missing"),
    (in_context, all_reached, "are too many"),
    (factorised, lambda *given: factors(*given, power=1), "are off"),
    (factorised, lambda *given: factors(*given, shift=False), "are off"),
    (factorised, lambda *given: factors(*given, root=1), "are off"),
    (factorised, lambda *given: factors(*given, least=-9.0), "are off"),
    (factorised, lambda seen, k, dims: factors(seen, k, len(seen)), "expected"),
    (factorised, by_counts, "are off"),
    (diagnosis, ["sound", *SPOTS[1:]], "1 is not sound"),
    (diagnosis, [SPOTS[0], "leak", *SPOTS[2:]], "2 is not leak"),
    (diagnosis, [*SPOTS[:2], "sound", *SPOTS[3:]], "3 is not sound"),
    (diagnosis, [*SPOTS[:4], "no baseline", SPOTS[5]], "5 is not no baseline"),
    (diagnosis, [*SPOTS[:5], "sound"], "6 is not sound"),
    (challenge_choose, by_votes, "expected"),
    (challenge_choose, by_mean_time, "expected"),
    (challenge_choose, lambda *given: nearest_times(*given, n=1), "expected"),
    (challenge_choose, lambda x, log_times, new: [0 for _ in new], "expected"),
]
