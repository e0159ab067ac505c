"""Chains of supersteps send, between any two ranks, the bytes that the virtual world counts."""

import numpy as np
import pytest
from tests.bench.planner.examples import QUICK, VIRTUAL, problem

from cnnlab.distributed import trial
from cnnlab.measure.planner.held import of_layer
from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.plan import CHAINS
from cnnlab.measure.planner.supersteps import data, sharded
from cnnlab.measure.worlds import Compute


@pytest.mark.parametrize("network, n_ranks, batch", [("lenet5", 3, 10), ("report", 4, 3)])
@pytest.mark.parametrize("name", [name for name, way in QUICK.items() if way.method in CHAINS])
def test_every_byte_is_planned(name, network, n_ranks, batch):
    way = QUICK[name]
    chain = CHAINS[way.method][0](problem(network, n_ranks, batch), VIRTUAL, **way.options)
    found = sum(step.often * step.sent for step in chain)
    how = {"batch": batch, "in_a_row": way.in_a_row, **way.options}
    counted = trial.sent(n_ranks, way.method, network, **how) / way.in_a_row
    np.testing.assert_allclose(found, counted)


def test_the_way_back_of_shards_begins_with_the_last_layer_that_learns():
    of = problem(n_ranks=3)
    sent = [int(step.sent.sum()) for step in sharded(of, VIRTUAL) if step.sent.any()]
    whole = [4 * (3 - 1) * n for n in map(of_layer, of.network.places) if n]
    assert sent == [*whole, *np.repeat(whole[::-1], 2)]


def test_compressors_take_their_time_on_every_shard():
    from cnnlab.measure.planner.machine import Packing

    slow = Machine(packing={"fp16": Packing(Compute(1.0, 0.0), Compute(100.0, 0.0))})
    free, paid = (data(problem(), machine, "fp16") for machine in (VIRTUAL, slow))
    more = sum(step.computing for step in paid) - sum(step.computing for step in free)
    assert more == pytest.approx(4 + 1 + 8 * 100)  # four shards and a sum; eight messages
