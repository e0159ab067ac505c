"""A server's queue as planned: every byte, and the time, of equal and of uneven pieces."""

import numpy as np
import pytest
from tests.bench.planner.examples import QUICK, VIRTUAL, problem

from cnnlab.measure.planner import checked, served
from cnnlab.measure.planner.machine import Machine, Packing
from cnnlab.measure.planner.plan import WAYS, plans
from cnnlab.measure.worlds import Compute
from cnnlab.ranks.virtual import Link

SERVERS = {name: way for name, way in QUICK.items() if way.method == "server"}


@pytest.mark.parametrize(
    "network, n_ranks, batch, link",
    [
        ("lenet5", 3, 24, "50us,100MB/s"),  # the first to come back gets longer pieces, and waits
        ("report", 5, 30, "10us,1GB/s"),  # short messages
        ("lenet5", 4, 7, "1ms,1GB/s"),  # the server waits for long messages to be there
    ],
)
def test_bytes_and_seconds_are_those_of_the_virtual_world(network, n_ranks, batch, link):
    found = plans(problem(network, n_ranks, batch), Machine(Link.parse(link)), SERVERS)
    assert {"server", "server one_bit", "server stale 4", "server stale any"} <= found.keys()
    for name, seen in checked.virtual(network, n_ranks, batch, link, SERVERS).items():
        np.testing.assert_allclose(found[name].sent, seen.sent, err_msg=name)
        assert found[name].seconds == pytest.approx(seen.seconds, rel=0.03), name


def test_stale_workers_wait_for_the_server_alone():
    of, fast = problem("lenet5", 5, 64), served.Queue(lambda n: 0.1 * n, 0.01, 0.02, 0.0)
    together, pieces = served.passed(of, fast, 0)
    assert pieces.tolist() == [served.STEPS] * 4
    # Each step: the longest way, replies to all, and one gradient; at first, all come at once.
    assert together == pytest.approx(served.STEPS * (1.6 + 4 * 0.02 + 0.01) + 3 * 0.01)
    assert served.passed(of, fast, 4)[0] == pytest.approx(served.STEPS * 1.63 + 3 * 0.03, rel=0.01)
    busy = served.passed(of, fast._replace(taking=1.0), 4)
    assert served.passed(problem(n_ranks=11, batch=1), fast, 4)[1].sum() == served.STEPS
    assert busy[0] == pytest.approx(1.6 + sum(busy[1]) * 1.02, rel=0.01)


def test_compressors_take_their_time_on_workers_and_on_the_server():
    packing = {"one_bit": Packing(Compute(100.0, 0.0), Compute(10.0, 0.0))}
    slow = served.outline(problem(), Machine(packing=packing), compress="one_bit")
    free = served.outline(problem(), VIRTUAL, compress="one_bit")
    assert slow.seconds - free.seconds == pytest.approx(100 + 3 * 10, rel=0.01)
    assert WAYS["server one_bit"].options == {"compress": "one_bit"}
