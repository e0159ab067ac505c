"""What is held: without images, what a rank's trial holds; with them, activations besides."""

import pytest
from tests.bench.planner.examples import QUICK, VIRTUAL, problem

from cnnlab.distributed import trial
from cnnlab.distributed.sharded import Sharded
from cnnlab.measure.planner import held
from cnnlab.measure.planner.held import of_layer
from cnnlab.measure.planner.plan import plans
from cnnlab.network import NETWORKS

AS_TRIALS = [n for n, w in QUICK.items() if w.method not in ("server", "elastic")]


@pytest.mark.parametrize("network", ["report", "lenet5"])
def test_without_images_it_is_parameters_gradients_and_residuals(network):
    found = plans(problem(network, 3, 0), VIRTUAL, QUICK)
    for name in found.keys() & set(AS_TRIALS):
        way = QUICK[name]
        of_ranks = trial.held(3, way.method, network, batch=6, **way.options)
        most = max(sum(its.values()) for its in of_ranks) / 4
        if way.options.get("compress") == "one_bit":  # and residuals: of all shards, and the sum
            n = problem(network).n
            most += 4 * -(-n // 3)
        if name == "sharded":  # the largest layer whole, and its gradient
            most += 2 * max(map(of_layer, NETWORKS[network].places))
        assert found[name].held == most, name


def test_of_a_sharded_network_no_more_than_one_layer_is_ever_whole(monkeypatch):
    sizes, views = [], Sharded.views
    monkeypatch.setattr(Sharded, "views", lambda of, i, n: sizes.append(n.size) or views(of, i, n))
    trial.sent(3, "sharded", "lenet5", batch=6)
    n = sum(-(-of_layer(place) // 3) for place in NETWORKS["lenet5"].places)
    assert held.sharded(problem("lenet5", 3, 0)) == 2 * (n + max(sizes))


def test_servers_and_springs_keep_models_besides():
    of = problem("report", 3, 0)
    found = plans(of, VIRTUAL, QUICK)
    assert found["server"].held == found["server stale 4"].held == 2 * of.n + 2 * of.n
    assert found["server one_bit"].held == 4 * of.n + of.n  # a residual
    assert found["elastic every 8"].held == 3 * of.n


def test_activations_grow_with_the_share():
    few, many = (plans(problem("report", 4, batch), VIRTUAL, QUICK) for batch in (32, 64))
    outputs = 28 * 28 + 2 * (6 * 24 * 24 + 6 * 6 * 6 + 10)
    assert many["alone"].held - few["alone"].held == 32 * outputs
    assert many["data"].held - few["data"].held == 8 * outputs
    assert many["sharded"].held - few["sharded"].held == 8 * outputs
