"""Everything sharded: the steps of one rank, with its share of the bytes."""

import pytest

from cnnlab.distributed.sharded import Sharded
from cnnlab.network import LENET5, NETWORKS
from cnnlab.ranks.virtual import World
from tests.distributed.uncut import check_virtual, replica


@pytest.mark.parametrize("network", NETWORKS)
def test_any_number_of_ranks_takes_the_steps_of_one(network):
    for n in range(1, 10):
        check_virtual(n, Sharded, network)


def test_more_ranks_than_images_in_a_batch():
    check_virtual(13, Sharded, "report")


def test_nothing_is_held_twice():
    def program(comm):
        return Sharded(comm).part(replica("lenet5")).n_bytes

    n = 4 * LENET5.parameters().flat.size
    group = World(7).run(program)
    assert sum(own["parameters"] for own in group) == sum(own["gradients"] for own in group) == n
    assert sum(own["optimizer"] for own in group) == n + 7 * 4  # and a count of steps each
    assert max(own["parameters"] for own in group) < n / 7 + 4 * 5
