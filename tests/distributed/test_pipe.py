"""The interpreter of schedules: what it holds, and where the network is cut."""

import pytest

from cnnlab.distributed.pipeline import Pipeline, stages
from cnnlab.network import EIGHT, LENET5, Network
from cnnlab.ranks.virtual import World
from tests.distributed.uncut import check_virtual, steps


def test_stages_are_cut_where_the_dearest_is_cheapest():
    assert stages(Network(), 1) == [0, 6]
    assert stages(Network(), 2) == [0, 1, 6]  # the convolution, and all else
    assert stages(Network(), 6) == list(range(7))
    for network in (LENET5, EIGHT):
        for n in range(1, 10):
            cuts = stages(network, n)
            assert cuts[0] == 0 and cuts[-1] == len(network.places)
            assert sorted(set(cuts)) == cuts and len(cuts) == n + 1


@pytest.mark.parametrize("n", [0, 7])
def test_more_stages_than_layers_are_refused(n):
    with pytest.raises(ValueError, match=f"pipeline: expected at most 6 stages, .* got {n}"):
        stages(Network(), n)


@pytest.mark.parametrize(
    "schedule, most", [("gpipe", [5, 5, 5]), ("1f1b", [3, 2, 1]), ("zero-bubble", [3, 3, 3])]
)
def test_a_rank_holds_as_many_micro_batches_as_its_schedule_says(schedule, most):
    def program(comm):
        method = Pipeline(comm, schedule, 5)
        steps(method, "lenet5")
        return method.pipe.most_held

    assert World(3).run(program) == most


def test_ranks_may_take_micro_batches_in_different_orders():
    def last_one_first(comm):
        method = Pipeline(comm, "gpipe", 3)
        method.plan[0][3:] = reversed(method.plan[0][3:])  # rank 1 sends the first one first
        return method

    check_virtual(2, last_one_first, "report")
