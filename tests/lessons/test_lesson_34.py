"""The shortest schedule: of ten operations, too, without trying all orders."""

import sys

import numpy as np
import pytest

from cnnlab.lessons.lesson_34 import challenge_schedule

TEN = {f"{j}": (1 + j % 3, []) for j in range(10)}
SOME = np.random.default_rng(0).random((10, 10)) < 0.15
FEW_NEEDS = {f"{j}": (1 + 7 * j % 10, [f"{i}" for i in range(j) if SOME[i, j]]) for j in range(10)}


@pytest.mark.parametrize("graph", [TEN, FEW_NEEDS], ids=["independent", "few needs"])
def test_the_model_answer_looks_at_few_beginnings_of_ten_operations(graph):
    calls = []
    sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code.co_name))
    try:
        plan = challenge_schedule.model()(graph, 3)
    finally:
        sys.setprofile(None)
    assert plan.keys() == graph.keys() and calls.count("go_on") < 20_000
    if graph is TEN:
        assert max(start + graph[name][0] for name, (_, start) in plan.items()) == 7
