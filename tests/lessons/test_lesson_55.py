"""The algorithms and graphs in the cells of lesson 55 are the package's; its tasks are shared."""

from functools import partial, reduce
from itertools import count, permutations

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed import averaging
from cnnlab.lessons import lesson_55 as lesson
from cnnlab.network import Network
from cnnlab.ranks.collectives import allreduce
from cnnlab.ranks.virtual import World
from cnnlab.training import Replica, Sgd
from tests.lessons import breaking

DIGITS = load("digits", 240, 40)


@pytest.fixture(scope="module")
def page():
    """What the lesson's cells of matter define."""
    names = {"np": np, "count": count, "permutations": permutations, "reduce": reduce}
    return breaking.defined("55", **names, allreduce=allreduce, Network=Network)


def packaged(make, task, n_ranks, n_steps):
    """The models that one of the package's methods leaves, on the same images."""

    def program(comm):
        params, slope = Network().parameters(), task.downhill(comm)
        params.flat[:] = task.start(comm.rank)
        images = DIGITS.train_images, DIGITS.train_labels
        replica = Replica(lesson.KERNELS["vector"], params, *images, 4 * n_ranks, Sgd(1.0))
        method = make(comm)

        def gradients(chosen):
            replica.grads.flat[:] = slope(params.flat.copy()) * np.float32(len(chosen))
            return 0.0

        replica.gradients = gradients
        for _ in range(n_steps):
            method.step(replica, np.arange(4 * n_ranks))
        return getattr(method, "centre", params.flat).copy()

    return np.array(World(n_ranks).run(program))


@pytest.mark.parametrize(
    "name, options, theirs",
    [
        ("local_sgd", {"every": 3}, partial(averaging.Local, every=3)),
        ("elastic", {"every": 2, "alpha": 0.2}, lambda c: averaging.Elastic(c, 2, 0.2)),
        ("gossip", {"every": 2, "graph": "ring"}, lambda c: averaging.Gossip(c, 2, "ring")),
        ("gossip", {"every": 1, "graph": "one_peer"}, lambda c: averaging.Gossip(c, 1, "one-peer")),
    ],
)
def test_an_algorithm_of_the_page_finds_what_the_packages_does(page, name, options, theirs):
    options = {k: page[v] if isinstance(v, str) else v for k, v in options.items()}
    task = lesson.SharedTask(DIGITS, 1, n_ranks=5)
    models = lesson.run(partial(page[name], **options), task, 5, 8).models
    np.testing.assert_allclose(models, packaged(theirs, task, 5, 8), atol=1e-5)
    assert abs(models - task.start(0)).max() > 0.1


@pytest.mark.parametrize("name", ["ring", "exponential", "one-peer"])
def test_graphs_are_the_packages(page, name):
    for n in (4, 7, 16):
        own, theirs = page[name.replace("-", "_")](n), averaging.GRAPHS[name].matrices(n)
        np.testing.assert_allclose(own, theirs, atol=1e-15)


def test_shares_are_skewed_by_label_and_else_the_same():
    plain, skewed = (lesson.SharedTask(DIGITS, 3, 10, skewed=s) for s in (False, True))
    labels = [np.unique(DIGITS.train_labels[share]).size for share in skewed.shares]
    assert max(labels) <= 3 < min(np.unique(DIGITS.train_labels[s]).size for s in plain.shares)
    assert sorted(np.concatenate(skewed.shares)) == sorted(np.concatenate(plain.shares))
    assert (plain.start(0) == plain.start(5)).all() and (plain.start(0) == skewed.start(0)).all()
    apart = lesson.SharedTask(DIGITS, 3, apart=True)
    assert (apart.start(0) != apart.start(1)).any()
