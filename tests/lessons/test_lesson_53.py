import numpy as np
import pytest

from cnnlab.data import held_out, load
from cnnlab.lessons import lesson_53
from cnnlab.lessons.lesson_53 import (
    FORMULAS,
    Compute,
    Look,
    challenge_pace,
    direction,
    path,
    search,
    stepped,
)
from cnnlab.ranks.virtual import Link
from cnnlab.training import OPTIMIZERS, train
from cnnlab.training.optimizers import Adam, Momentum, Nesterov, RMSProp


def steady(batch, rate):
    """Every epoch with the same batch and rate."""
    return lambda epochs: (batch, rate)


def test_a_challenge_tells_the_time_or_what_is_missing(capsys):
    data = load("digits", 160, 40)
    how = {"compute": Compute(1e-5, 1e-6), "link": Link(), "n_numbers": 100, "n_ranks": 4}
    assert challenge_pace(..., data, 0.5, 1.0, **how) is None
    assert challenge_pace(lambda epochs: None, data, 0.5, 1.0, **how) is None
    assert capsys.readouterr().out.splitlines() == ["challenge: not yet answered"] * 2
    assert challenge_pace(steady(16, 1e-9), data, 0.9, 1.0, epochs=1, **how) is None
    assert "after 1 epochs at best; the goal is 90%" in capsys.readouterr().out
    seconds = challenge_pace(steady(16, 0.4), data, 0.0, 1.0, **how)
    said = capsys.readouterr().out
    assert f"{1 / seconds:.2f} times as fast as the best" in said and "on 4 ranks" in said


DIGITS = load("digits", 200, 50)


def test_test_images_take_no_part():
    data = held_out(DIGITS, 120, 40)
    assert np.array_equal(data.train_images, DIGITS.train_images[:120])
    assert np.array_equal(data.test_images, DIGITS.train_images[-40:])
    assert np.array_equal(data.test_labels, DIGITS.train_labels[-40:])
    assert len(data.train_labels) == 120


def test_every_rate_is_tried_with_every_seed():
    rates = {"sgd": (0.1, 0.4), "adam": (0.01, 1e9)}
    result = search(DIGITS, rates, (3, 4), epochs=2, batch=8)
    assert {name: tuple(group) for name, group in result.items()} == rates
    for seed, accuracy in zip((3, 4), result["sgd"][0.4], strict=True):
        expected = train(DIGITS, rate=0.4, seed=seed, epochs=2, batch=8).history[-1]
        assert accuracy == expected["test_accuracy"]
    assert result["adam"][1e9] == (0.1, 0.1)  # diverged


HIT = [Look(1, 100, 16, 0.4, 0.9), Look(2, 200, 16, 0.4, 0.98)]
MISS = [Look(1, 50, 64, 0.4, 0.9)]


def test_steps_are_drawn_and_misses_crossed():
    ax = lesson_53.steps_to({"sgd": {16: [HIT, HIT], 64: [HIT, MISS]}}, 0.97)
    marks = [(line.get_marker(), *map(float, line.get_xydata()[0])) for line in ax.lines[:4]]
    assert marks == [("o", 16, 200), ("o", 16, 200), ("o", 64, 200), ("x", 64, 50)]
    assert list(ax.lines[4].get_xdata()) == [16]  # the line ends where one misses
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), [200, 50])  # ideal


def ones(w, t):
    return np.ones_like(w)


def test_first_steps_by_hand():
    start = np.zeros(1)
    after = {name: stepped(f, start, ones, 0.1, 2)[0] for name, f in FORMULAS.items()}
    assert after["sgd"] == pytest.approx(-0.2)
    assert after["momentum"] == pytest.approx(-0.1 - 0.19)
    assert after["nesterov"] == pytest.approx(-0.1 * 1.9 - 0.1 * (1 + 0.9 * 1.9))
    assert after["adagrad"] == pytest.approx(-0.1 - 0.1 / np.sqrt(2))
    assert after["rmsprop"] == pytest.approx(-0.1 / 0.1 - 0.1 / np.sqrt(0.0199))
    assert after["adam"] == pytest.approx(-0.2)


@pytest.mark.parametrize(
    "name, make",
    [
        ("adam", type("", (Adam,), {"epsilon": 1e-7})),
        ("adam", type("", (Adam,), {"beta2": 0.99})),
        ("momentum", Nesterov),
        ("nesterov", Momentum),
        ("rmsprop", type("", (RMSProp,), {"beta": 0.9})),
        ("adagrad", RMSProp),
    ],
)
def test_another_direction_is_told(name, make):
    verdict = direction(name, make)
    assert not verdict and "not as its formula" in verdict.text


def test_a_path_begins_at_its_start():
    places = path(OPTIMIZERS["sgd"].load()(0.5), np.array([1.0, 2.0]), lambda w, t: w, 2)
    np.testing.assert_allclose(places, [[1, 2], [0.5, 1], [0.25, 0.5]])
