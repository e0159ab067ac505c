"""Data, pipeline and model parallelism at once."""

from math import prod

import pytest

from cnnlab.distributed.pipeline import Hybrid
from cnnlab.network import NETWORKS
from cnnlab.ranks.virtual import World
from tests.distributed.uncut import check_virtual, steps


@pytest.mark.parametrize("network", NETWORKS)
def test_any_grid_takes_the_steps_of_one_rank(network):
    for grid in [(1, 1, 1), (2, 1, 1), (1, 3, 1), (1, 1, 4), (5, 1, 1), (1, 3, 2), (2, 2, 2)]:
        check_virtual(prod(grid), lambda comm, grid=grid: Hybrid(comm, grid, n_micro=2), network)
    options = {"schedule": "zero-bubble", "n_micro": 3, "cut": "pixels"}
    for grid in [(7, 1, 1), (2, 2, 2), (3, 1, 3), (1, 3, 3)]:
        check_virtual(prod(grid), lambda comm, grid=grid: Hybrid(comm, grid, **options), network)


def test_a_grid_of_another_size_is_refused():
    text = "grid: expected data × pipeline × model to be the 4 ranks, got 2 × 2 × 2 = 8"
    with pytest.raises(ValueError, match=text):
        World(4).run(lambda comm: Hybrid(comm, (2, 2, 2)))


def test_neighbours_share_a_layer_and_pipelines_lie_apart():
    def program(comm):
        method = Hybrid(comm, (2, 2, 2), n_micro=2)
        steps(method, "report")
        return method.layer.members, method.line.members, method.data.members

    assert World(8).run(program)[0] == ((0, 1), (0, 2), (0, 4))
