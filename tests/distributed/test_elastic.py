"""Elastic averaging: both sides from the old values."""

import functools

import numpy as np
import pytest

from cnnlab.distributed.averaging import Elastic
from cnnlab.ranks.virtual import World
from tests.distributed.apart import models_by_formula, on_ranks, replica


@pytest.mark.parametrize("n, every, rate", [(1, 1, 0.5), (3, 1, 0.2), (4, 2, 0.3), (5, 3, 0.1)])
def test_models_and_centre_are_those_of_the_formula(n, every, rate):
    centre = replica().params.flat.copy()

    def meet(models, step):
        nonlocal centre
        if step % every:
            return models
        old, centre = centre, centre + rate * (models - centre).sum(0)
        return models - rate * (models - old)

    models = models_by_formula(n, meet)
    result, own = on_ranks(n, functools.partial(Elastic, every=every, moving_rate=rate))
    np.testing.assert_allclose(own, models, atol=1e-12)
    np.testing.assert_allclose(result, centre, atol=1e-12)
    assert abs(models - centre).max() > 1e-3


def test_all_pulls_together_are_nine_tenths_of_the_way_unless_another_rate_is_given():
    assert World(6).run(lambda comm: Elastic(comm).moving_rate) == [0.15] * 6


@pytest.mark.parametrize("n, rate", [(2, 0.0), (2, -0.1), (1, 1.01), (3, 0.51), (4, float("nan"))])
def test_a_rate_beyond_which_the_centre_swings_further_each_time_is_refused(n, rate):
    text = f"moving_rate: expected a number above 0, at most {2 / (n + 1):.3g} for {n} ranks, got"
    with pytest.raises(ValueError, match=text):
        World(n).run(Elastic, 1, rate)


@pytest.mark.parametrize("n", [1, 3, 15])
def test_at_the_largest_rate_the_centre_swings_as_far_again(n):
    def program(comm):
        group, method = replica(), Elastic(comm, 1, 2 / (n + 1))
        method.enter(group)
        method.centre -= 1
        algorithms = []
        for _ in range(3):
            algorithms.append((group.params.flat - method.centre)[0])
            method.meet(group)
        return algorithms

    np.testing.assert_allclose(World(n).run(program)[0], [1, -1, 1])
