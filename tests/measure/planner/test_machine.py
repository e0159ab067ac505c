"""The planner's machine: the kernels of a step, and what computing and messages take."""

import numpy as np
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.measure.planner.machine import Kernel, Machine, network_work
from cnnlab.measure.planner.probe import Timed
from cnnlab.measure.worlds import Compute
from cnnlab.network import NETWORKS
from cnnlab.ranks.virtual import Link
from cnnlab.training import Replica, Sgd


@pytest.mark.parametrize("name", NETWORKS)
def test_the_kernels_are_those_that_a_step_calls(name):
    network, strategy, rng = NETWORKS[name], Timed(KERNELS["vector"]), np.random.default_rng(0)
    images = rng.random((3, *network.image_shape)).astype(np.float32)
    labels = rng.integers(0, network.classes, 3)
    Replica(strategy, network.parameters(), images, labels, 3, Sgd(0.1)).gradients(np.arange(3))
    called = sorted(k for (k, _), samples in strategy.samples.items() for _ in samples)
    assert called == sorted(k for of in network_work(network) for k in of.forward + of.back)


def test_what_was_measured_counts_and_the_rest_is_charged():
    known, other = Kernel("relu", 100), Kernel("sigmoid", 2000)
    machine = Machine(kernels={known: Compute(1e-3, 1e-4)})
    assert machine.computing([known], 5) == pytest.approx(1.5e-3)
    assert machine.computing([other], 4) == pytest.approx(2e-6 + 4 * 2000 / 2e9)
    whole = Machine(whole=Compute(1.0, 2.0))
    assert whole.gradients(NETWORKS["report"], 3) == 7
    assert whole.gradients(NETWORKS["report"], 0) == 0


def test_long_messages_leave_together_and_short_ones_in_turn():
    machine = Machine(Link(latency=1e-3, bandwidth=1e6, call=1e-5, eager=1000))
    sent = np.zeros((3, 3), int)
    assert machine.exchange(sent) == 0
    sent[0, 1:] = 1000
    assert machine.exchange(sent) == pytest.approx(1e-3 + 2e-3 + 2e-5)
    sent[0, 1:] = 5000
    assert machine.exchange(sent) == pytest.approx(1e-3 + 5e-3 + 2e-5)
