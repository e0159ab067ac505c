"""Layers shared by ranks, as planned: times near the virtual world's, where blocks differ, too."""

import pytest
from tests.bench.planner.examples import QUICK, VIRTUAL, problem

from cnnlab.measure.planner import checked
from cnnlab.measure.planner.cut_layers import layers, sliced
from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.plan import plans
from cnnlab.measure.planner.supersteps import traffic
from cnnlab.network import NETWORKS
from cnnlab.ranks.virtual import Link

CUT = {name: way for name, way in QUICK.items() if way.method in ("layers", "model")}


@pytest.mark.parametrize(
    "network, n_ranks, batch, within",
    [("lenet5", 4, 32, 0.01), ("eight", 7, 9, 0.1)],  # equal blocks, nearly, and others
)
def test_seconds_are_those_of_the_virtual_world(network, n_ranks, batch, within):
    link = "10us,1GB/s"
    found = plans(problem(network, n_ranks, batch), Machine(Link.parse(link)), CUT)
    for name, seen in checked.virtual(network, n_ranks, batch, link, CUT).items():
        assert found[name].seconds == pytest.approx(seen.seconds, rel=within), name


def test_alone_a_rank_sends_nothing():
    assert not traffic(layers(problem(n_ranks=1), VIRTUAL)).any()
    of = sliced(NETWORKS["report"], 1, 8, VIRTUAL, "pixels")
    assert not any(traffic(part).any() for layer in of for part in layer if part)
