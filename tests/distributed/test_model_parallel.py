"""Layers shared within, by features or by pixels: the steps of one rank."""

import pytest

from cnnlab.distributed.model import ModelParallel
from cnnlab.network import NETWORKS
from cnnlab.ranks.virtual import World
from tests.distributed.uncut import check_virtual, steps


@pytest.mark.parametrize("cut", ["features", "pixels"])
@pytest.mark.parametrize("network", NETWORKS)
def test_any_number_of_ranks_takes_the_steps_of_one(cut, network):
    for n in range(1, 10):
        check_virtual(n, lambda comm: ModelParallel(comm, cut), network)


def test_by_pixels_a_convolution_sends_a_halo_of_four_rows_and_by_features_every_map():
    def lengths(cut):
        world = World(2)
        world.run(lambda comm: steps(ModelParallel(comm, cut), "lenet5"))
        return {event.n_bytes for event in world.events}

    halo = 11 * 6 * 2 * 12 * 4  # of the second layer: rank 1 sends 2 rows of 12 more than its own
    maps = 11 * 3 * 12 * 12 * 4  # 3 of 6 maps
    assert halo in lengths("pixels") and maps not in lengths("pixels")
    assert maps in lengths("features") and halo not in lengths("features")
