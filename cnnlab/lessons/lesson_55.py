"""The exercises of lesson 55."""

import numpy as np

from cnnlab.check.exercises import kinds


def elastics(models, centre, gradients, rate, moving, *, late=False, mean=False, ahead=False):
    """One step of elastic averaging in float64, as new arrays: right, or with a usual mistake."""
    old = models - rate * gradients if ahead else models
    new = models - moving * (old - centre) - rate * gradients
    gap = (new if late else old) - centre
    return new, centre + moving * (gap.mean(0) if mean else gap.sum(0))


ELASTIC_MISTAKES = {
    "the centre is pulled by the new models, and should be by the old ones": {"late": True},
    "the centre moves by the mean of the pulls, and should by their sum": {"mean": True},
    "the pull is taken after the step along the gradient, and should be before": {"ahead": True},
}


def as_elastic(step) -> str:
    """What is wrong with a step of elastic averaging, in words; nothing if it is right."""
    rng = np.random.default_rng()
    start, gradients = rng.normal(size=(2, 4, 6))
    centre, rate, moving = rng.normal(size=6), 0.3, 0.2
    models, c = start.copy(), centre.copy()
    step(models, c, gradients.copy(), rate, moving)
    if np.array_equal(models, start):
        return "the models have not moved: change them in place"
    if np.array_equal(c, centre):
        return "the centre has not moved: change it in place"
    given = start, centre, gradients, rate, moving
    right = elastics(*given)
    if np.allclose(models, right[0]) and np.allclose(c, right[1]):
        return ""
    for words, how in ELASTIC_MISTAKES.items():
        if all(map(np.allclose, (models, c), elastics(*given, **how))):
            return words
    if not np.allclose(c, right[1]):
        return f"the centre is off by up to {np.abs(c - right[1]).max():.2g}"
    return f"the models are off by up to {np.abs(models - right[0]).max():.2g}"


def as_mixing(weigh) -> str:
    """What is wrong with a function that makes mixing matrices, in words; nothing if it is right.

    It is tried on a star, on a ring with a tail, and on two ranks.
    """
    star = [(0, 1), (0, 2), (0, 3), (0, 4)]
    for n, edges in ((2, [(0, 1)]), (5, star), (5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)])):
        got = np.asarray(weigh(n, edges), float)
        if got.shape != (n, n):
            return f"for {n} ranks the matrix is {got.shape}, and should be ({n}, {n})"
        linked = np.eye(n, dtype=bool)
        for i, j in edges:
            linked[i, j] = linked[j, i] = True
        if (got < -1e-12).any():
            return f"edges {edges}: a weight is negative: {got.min():.2g}"
        if (got[~linked] != 0).any():
            return f"edges {edges}: ranks that are not neighbours have a weight"
        if not np.allclose(got.sum(1), 1):
            return f"edges {edges}: the rows add up to {np.round(got.sum(1), 3)}"
        if not np.allclose(got.sum(0), 1):
            return f"edges {edges}: rows add up to 1, columns to {np.round(got.sum(0), 3)}"
        mixed = linked & (got > 1e-12)
        if not all(mixed[i, j] and mixed[j, i] for i, j in edges):
            return f"edges {edges}: neighbours have no weight, and never agree"
    return ""


@kinds.formula(
    lambda rng: {"n_ranks": int(rng.integers(2, 65)), "moving_rate": float(rng.uniform(0, 0.1))},
    "Write c ← c + α Σ (x − c), and collect what stands before c.",
    "The talk's centre is (1 − β) c + (β/m) Σ x, with m ranks.",
)
def beta(n_ranks, moving_rate):
    """β = m α: the centre goes m times as large a share of the way as a model does."""
    return n_ranks * moving_rate


@kinds.formula(
    lambda rng: {"rate": float(rng.uniform(0.01, 0.5)), "curvature": float(rng.uniform(0.1, 3.5))},
    "A step is x − rate · curvature · x: what does the theory call that product?",
    "Put rate · curvature in the place of η.",
)
def largest(rate, curvature):
    """Only the product of rate and curvature matters: it is η of the parabola of curvature 1."""
    return (4 - 2 * rate * curvature) / (4 - rate * curvature)


@kinds.tested(
    as_mixing,
    "Both ends of an edge must give it the same weight: which of the two degrees is safe?",
    "1 / (1 + the larger degree) for an edge; the diagonal is what is left of 1 in its row.",
)
def mixing(n, edges):
    """A symmetric matrix whose rows add up to 1 has columns that do, too."""
    weights = np.zeros((n, n))
    degree = np.bincount(np.ravel(edges), minlength=n)
    for i, j in edges:
        weights[i, j] = weights[j, i] = 1 / (1 + max(degree[i], degree[j]))
    np.fill_diagonal(weights, 1 - weights.sum(1))
    return weights


@kinds.tested(
    as_elastic,
    "What does the centre need of the models, and is it still there after they have moved?",
    "Take the pulls once, moving_rate · (models − centre), and use them twice.",
    tells=True,
)
def elastic(models, centre, gradients, rate, moving_rate):
    """The pulls are taken once, from the old values: equal and opposite, as a spring's are."""
    pulls = moving_rate * (models - centre)
    models -= pulls + rate * gradients
    centre += pulls.sum(0)
