import numpy as np
import pytest

from cnnlab.measure.search_toy import BEST, START, TURN, TURNS, VARIANTS, ascend, toy, tracks
from cnnlab.training.search import Trial


def test_a_step_climbs_the_surrogate_and_the_score_is_the_whole():
    trial = Trial(0, {"h0": 1.0, "h1": 0.0}, 1, None, 0)
    result = ascend(trial, None)
    a, b = START
    assert np.allclose(result.state["theta"], [a - 0.01 * 2 * a, b])
    assert result.score == pytest.approx(1.2 - (0.98 * a) ** 2 - b**2)
    on = ascend(trial, result.state).state["theta"]
    assert np.allclose(on, [a * 0.98**2, b]) and result.state["theta"][0] == 0.98 * a


def test_alone_a_member_leaves_one_coordinate_where_it_was():
    ways = tracks(toy()["neither"])
    assert ways.shape == (2, TURNS + 1, 2)
    assert np.allclose(ways[0, :, 1], START[1]) and np.allclose(ways[1, :, 0], START[0])
    assert np.allclose(ways[0, -1, 0], START[0] * 0.98 ** (TURN * TURNS))


def test_the_known_results():
    """Copying weights reaches the best; copying all, hyperparameters too, needs exploring."""
    runs = [toy(seed) for seed in range(9)]
    reached = {
        name: np.median([max(one.score for one in run[name]) for run in runs]) for name in VARIANTS
    }
    assert reached["neither"] == pytest.approx(BEST - START[1] ** 2, abs=1e-3)
    assert reached["exploit alone"] == pytest.approx(BEST - START[1] ** 2, abs=1e-3)
    assert reached["exploit weights"] > BEST - 0.01
    assert reached["neither"] < reached["explore alone"] < reached["both"] <= BEST
