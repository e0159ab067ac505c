import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cnnlab.ranks.cost_model import PREDICTED, Model, fit, lower_bound, simulate
from cnnlab.ranks.schedules import SCHEDULES

MODEL = Model(latency=2e-6, gap=1e-10, add=3e-10)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 64])
def test_the_simulation_agrees_with_the_formulas_where_they_hold(name, ranks):
    for n in (ranks, 64 * ranks):
        finished = simulate(MODEL, name, ranks, n)
        assert finished.max() == pytest.approx(PREDICTED[name](MODEL, ranks, n), rel=1e-9)
        assert finished.max() >= 0.999 * lower_bound(MODEL, ranks, n)


def test_the_formulas_are_those_of_the_literature():
    model, m, p = Model(latency=5.0, gap=0.25, size_of=4), 1000, 16
    assert PREDICTED["tree"](model, p, m) == 2 * 5 * 4 + 2 * m * 4
    assert PREDICTED["butterfly"](model, p, m) == 5 * 4 + m * 4
    assert PREDICTED["ring"](model, p, m) == pytest.approx(2 * 5 * 15 + 2 * m * 15 / 16)
    assert PREDICTED["rabenseifner"](model, p, m) == pytest.approx(2 * 5 * 4 + 2 * m * 15 / 16)
    assert lower_bound(model, p, m) == pytest.approx(5 * 4 + 2 * m * 15 / 16)


@pytest.mark.parametrize("name", SCHEDULES)
def test_one_late_rank_delays_all(name):
    late = np.zeros(8)
    late[5] = 1.0
    assert simulate(MODEL, name, 8, 80, late).min() > 1


def test_a_rank_sends_one_message_after_the_other():
    """Each takes a second: rank 0 receives two, and then sends two."""
    model = Model(latency=0, gap=1, size_of=1)
    assert simulate(model, "tree", 4, 1).tolist() == [4, 4, 4, 4]


def test_other_numbers_of_ranks_cost_two_rounds_more():
    for name in ("butterfly", "rabenseifner"):
        assert simulate(MODEL, name, 9, 9).max() > simulate(MODEL, name, 8, 9).max() + 1.9e-6


@given(st.floats(1e-7, 1e-3), st.floats(1e-12, 1e-8))
def test_a_fit_finds_what_made_the_times(latency, gap):
    sizes = [1, 10, 100, 10_000, 1_000_000]
    found = fit(sizes, [latency + 4 * n * gap for n in sizes])
    assert found.latency == pytest.approx(latency, rel=1e-3)
    assert found.gap == pytest.approx(gap, rel=1e-3)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="sizes: expected at least two different ones"):
        fit([1], [1.0])
    with pytest.raises(ValueError, match="seconds: expected positive numbers"):
        fit([1, 2], [1.0, -1.0])
    with pytest.raises(ValueError, match=r"schedule: expected one of tree, .* got 'star'"):
        simulate(MODEL, "star", 2, 1)
    with pytest.raises(ValueError, match="start: expected one time for each of 2 ranks, got 1"):
        simulate(MODEL, "ring", 2, 1, [0.0])
    with pytest.raises(ValueError, match="latency: expected a finite number of at least 0, got -1"):
        Model(-1, 0)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_rank_that_waits_for_nobody_takes_no_time(name):
    assert not simulate(MODEL, name, 5, 0).any()
