"""Plans beside runs: how far they agree."""

import numpy as np
import pytest

from cnnlab.measure.planner import checked
from cnnlab.measure.planner.plan import Plan


def plan(name, seconds):
    return Plan(name, seconds, np.array([[0, 4000], [8000, 0]]), 1234)


PLANS = {name: plan(name, t) for name, t in {"data": 1e-3, "server": 2e-3, "sharded": 4e-3}.items()}


def test_order_and_errors_are_told():
    same = checked.agreement(PLANS, {"data": 2e-3, "server": 4e-3, "sharded": 16e-3})
    assert same[:3] == pytest.approx((1, 0.5, 0.75)) and same.name == "sharded"
    assert checked.agreement(PLANS, {"data": 3, "server": 2, "sharded": 1}).correlation == -1
    assert "75.0% at worst (sharded)" in str(same)


def test_a_table_has_a_line_for_each_way_that_was_run():
    head, units, *rows = checked.table(PLANS, {"server": 5e-3}).splitlines()
    assert head.split() == ["plan", "seen", "sent", "held"]
    assert units.split() == ["ms", "ms", "kB", "×1000"]
    assert [row.split() for row in rows] == [["server", "2.000", "5.000", "8.000", "1"]]
    assert len({len(line) for line in (head, units, *rows)}) == 1
    assert [line.split()[0] for line in checked.table(PLANS).splitlines()[2:]] == [*PLANS]


def test_numbers_have_four_digits():
    told = [checked.short(n) for n in (0, 0.1234567, 12.3456, 99.999, 12345.6)]
    assert told == ["0", "0.123", "12.35", "100.0", "12,346"]


def test_agreements_have_a_line_each():
    same = checked.agreement(PLANS, {"data": 2e-3, "server": 4e-3, "sharded": 16e-3})
    assert checked.agreements({"here": same}).splitlines()[1].split() == [
        *("here", "1.00", "50.0%", "75.0%", "sharded")
    ]


@pytest.mark.mpi
def test_ways_take_turns_on_real_ranks():
    from cnnlab.ranks.cluster import cluster

    with cluster(2) as ranks:
        names = ["data", "layers", "local every 8", "hybrid Nx2x1", "server stale any"]
        found = ranks.run(checked.real, "report", 8, names, 3)
    assert found[0].keys() == {*names} - {"hybrid Nx2x1"}  # two ranks are no grid
    assert found[0] == found[1] and {len(samples) for samples in found[0].values()} == {3}
    assert all(seconds > 0 for seconds in checked.medians(found[0]).values())
