"""Layers shared among virtual ranks: the parameters of one rank, and the time of their blocks."""

import functools

import numpy as np
import pytest

from cnnlab.distributed import trial
from cnnlab.network import NETWORKS
from cnnlab.ranks.virtual import World


@pytest.mark.parametrize("network, n_ranks", [("report", 1), ("report", 4), ("eight", 3)])
def test_virtual_ranks_take_the_step_of_one(network, n_ranks):
    program = functools.partial(trial.parameters, way="layers", network=network, batch=7)
    (uncut,) = World(1).run(lambda comm: trial.parameters(comm, "alone", network, batch=7))
    assert abs(uncut - NETWORKS[network].parameters(0).flat).max() > 1e-4
    for result in World(n_ranks).run(program):
        np.testing.assert_allclose(result, uncut, atol=1e-6)


def test_a_rank_is_charged_for_its_blocks_alone():
    how = {"net": "lenet5", "batch": 32}
    alone = trial.virtual_seconds(1, None, "alone", **how)
    at_once = trial.virtual_seconds(2, "1ns,1000GB/s", "layers", **how)
    assert alone / 2 < at_once < 0.6 * alone
