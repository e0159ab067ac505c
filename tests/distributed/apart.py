"""Ranks with a model each, by formula: what methods that average models must find."""

from itertools import chain

import numpy as np

from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.ranks.schedules import block
from cnnlab.ranks.virtual import World
from cnnlab.training import Replica, Sgd

DIGITS = load("digits", 60, 10)
RATE = 0.5
BATCHES = [np.arange(k, k + n) for k, n in ((0, 12), (12, 12), (3, 12), (30, 12), (40, 2))]


def replica():
    params = Network().parameters(0, np.float64)
    images, labels = DIGITS.train_images, DIGITS.train_labels
    return Replica(KERNELS["reference"], params, images, labels, 12, Sgd(RATE))


def steps(comm, make, n_epochs=2):
    """On a rank: the result after some epochs, and this rank's own model just before."""
    group, method = replica(), make(comm)
    for _ in range(n_epochs):
        for chosen in BATCHES:
            method.step(group, chosen)
        own = group.params.flat.copy()
        method.gather(group)
    return group.params.flat, own


def models_by_formula(n, meet, n_epochs=2, before=False):
    """All models (P, n) after some epochs; `meet(models, step)` moves them.

    A gradient is taken before ranks meet, and the step along it is taken after; with `before` they
    meet before the gradient.
    """
    group = replica()
    models = np.stack([group.params.flat] * n)
    for step, chosen in chain.from_iterable(enumerate(BATCHES) for _ in range(n_epochs)):
        models = meet(models, step) if before else models
        directions = np.zeros_like(models)
        for rank, model in enumerate(models):
            mine = chosen[slice(*block(rank, n, len(chosen)))]
            group.params.flat[:] = model
            group.gradients(mine)
            directions[rank] = RATE * group.grads.flat / max(1, len(mine))
        models = (models if before else meet(models, step)) - directions
    return models


def on_ranks(n, make):
    """The result, and the models of all ranks (P, n), of n virtual ranks."""
    results, own = zip(*World(n).run(steps, make), strict=True)
    assert all(np.array_equal(results[0], other) for other in results)
    return results[0], np.stack(own)
