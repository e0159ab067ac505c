"""Which plan is taken: the first at an accuracy, among those that fit."""

from math import inf

import numpy as np
import pytest

from cnnlab import data
from cnnlab.measure.planner.choose import curve, recommend, steps_to, to_accuracy
from cnnlab.measure.planner.plan import Plan
from cnnlab.network import NETWORKS

CURVES = {
    "as one rank": [(10, 0.5), (20, 0.9), (30, 0.8)],
    "local, every 8": [(10, 0.3), (20, 0.5), (30, 0.9)],
    "one_bit": [(10, 0.2), (20, 0.4), (30, 0.6)],
}
CURVES = {name.replace(",", ""): looks for name, looks in CURVES.items()}


def plan(name, seconds, held):
    return Plan(name, seconds, np.zeros((2, 2)), held)


PLANS = {
    "data": plan("data", 2.0, 100),
    "sharded": plan("sharded", 3.0, 50),
    "local every 8": plan("local every 8", 1.0, 100),
    "data one_bit": plan("data one_bit", 0.5, 120),
}


def test_steps_to_an_accuracy_are_the_first_that_were_seen():
    looks = CURVES["as one rank"]
    assert [steps_to(looks, target) for target in (0.5, 0.85, 0.95)] == [10, 20, inf]
    assert to_accuracy(PLANS["data"], CURVES, 0.85) == 40
    assert to_accuracy(PLANS["data"], {}, 0.85) == inf


def test_the_shortest_step_is_not_always_first():
    best, why = recommend(PLANS, CURVES, 0.85)
    assert best == "local every 8"
    assert why == {
        "data": "1.33 times as long",
        "sharded": "2.00 times as long",
        "local every 8": "first at 85%",
        "data one_bit": "does not reach 85%",
    }
    assert recommend(PLANS, CURVES, 0.45)[0] == "data one_bit"


def test_memory_is_a_bound():
    best, why = recommend(PLANS, CURVES, 0.85, memory=60)
    assert best == "sharded" and why["data"] == "holds 100 numbers"
    best, why = recommend(PLANS, CURVES, 0.85, memory=10)
    assert best == "" and why["sharded"] == "holds 50 numbers"


def test_a_curve_has_a_look_after_each_epoch():
    few = data.load("digits", 96, 40)
    how = {"network": NETWORKS["report"], "batch": 32, "epochs": 2}
    alone, together = (curve("data", few, n_ranks, **how) for n_ranks in (1, 2))
    assert [steps for steps, _ in alone] == [3, 6]
    assert [right for _, right in alone] == pytest.approx([right for _, right in together])
