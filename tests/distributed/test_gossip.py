"""Gossip: the models of all ranks after each step are those of a matrix product."""

import functools

import numpy as np
import pytest

from cnnlab.distributed.averaging import GRAPHS, Gossip
from cnnlab.ranks.virtual import World
from tests.distributed.apart import models_by_formula, on_ranks


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n, every", [(1, 1), (2, 1), (5, 1), (6, 2), (8, 1)])
def test_models_are_those_of_the_formula(graph, n, every):
    matrices = GRAPHS[graph].matrices(n)

    def meet(models, step):
        if step % every:
            return models
        return matrices[step // every % len(matrices)] @ models

    models = models_by_formula(n, meet)
    result, own = on_ranks(n, functools.partial(Gossip, every=every, graph=graph))
    np.testing.assert_allclose(own, models, atol=1e-12)
    np.testing.assert_allclose(result, models.mean(0), atol=1e-12)
    assert n == 1 or np.ptp(models, axis=0).max() > 1e-3


def test_an_unknown_graph_is_refused():
    with pytest.raises(ValueError, match="graph: expected one of ring, grid, exponential, one-"):
        World(2).run(functools.partial(Gossip, graph="star"))
