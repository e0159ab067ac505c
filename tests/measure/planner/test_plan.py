"""Plans are those of the virtual world, nearly: the same bytes, and times in the same order."""

import numpy as np
from tests.bench.planner.examples import QUICK, VIRTUAL, problem

from cnnlab.distributed import METHODS
from cnnlab.measure.planner import checked
from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.plan import CHAINS, OUTLINES, WAYS, fits, plans
from cnnlab.ranks.virtual import Link


def test_plans_agree_with_virtual_runs():
    link = "50us,100MB/s"
    found = plans(problem("lenet5", 4, 24), Machine(Link.parse(link)), QUICK)
    seen = checked.virtual("lenet5", 4, 24, link, QUICK)
    assert found.keys() == seen.keys() == QUICK.keys() - {"hybrid Nx2x2"}
    for name, plan in found.items():
        np.testing.assert_allclose(plan.sent, seen[name].sent, err_msg=name)
    agreement = checked.agreement(found, {name: its.seconds for name, its in seen.items()})
    assert agreement.correlation > 0.95 and agreement.median < 0.005 and agreement.worst < 0.08


def test_what_is_sent_every_so_often_is_a_mean():
    found = plans(problem(), VIRTUAL, QUICK)
    assert found["local every 8"].busiest == found["data"].busiest / 8


def test_there_is_a_plan_for_every_method():
    assert {way.method for way in WAYS.values()} == METHODS.keys()
    assert CHAINS.keys() | OUTLINES.keys() == METHODS.keys()
    assert not CHAINS.keys() & OUTLINES.keys()


def test_a_grid_has_two_pipelines_or_more():
    fit = {
        n: [k for k in WAYS if k[:6] == "hybrid" and fits(WAYS[k], problem("eight", n))]
        for n in (2, 4, 5, 8)
    }
    both = ["hybrid Nx2x1", "hybrid Nx1x2"]
    assert fit == {2: [], 4: both, 5: [], 8: [*both, "hybrid Nx2x2"]}
    assert WAYS["hybrid Nx2x2"].on(16) == {"grid": (4, 2, 2)}


def test_a_pipeline_longer_than_the_network_has_no_plan():
    assert not any(name.startswith("pipeline") for name in plans(problem("report", 7), VIRTUAL))


def test_one_rank_alone_waits_for_nobody():
    slow = Machine(Link.parse("1s,1MB/s"))
    alone = plans(problem(), slow, QUICK)["alone"]
    assert alone.seconds == slow.gradients(problem().network, 32) and not alone.sent.any()
