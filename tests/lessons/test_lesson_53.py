import numpy as np
import pytest

from cnnlab.data import held_out, load
from cnnlab.lessons import lesson_53
from cnnlab.lessons.lesson_53 import (
    FORMULAS,
    Compute,
    Look,
    challenge_pace,
    decaying,
    direction,
    follow,
    growing,
    path,
    scaled,
    search,
    stepped,
)
from cnnlab.ranks.virtual import Link
from cnnlab.training import BATCH, OPTIMIZERS, accuracy, train
from cnnlab.training.optimizers import Adam, Momentum, Nesterov, RMSProp

DIGITS, FEW = load("digits", 200, 50), load("digits", 160, 40)


def steady(batch, rate):
    """Every epoch with the same batch and rate."""
    return lambda epochs: (batch, rate)


def test_a_challenge_tells_the_time_or_what_is_missing(capsys):
    how = {"compute": Compute(1e-5, 1e-6), "link": Link(), "n_numbers": 100, "n_ranks": 4}
    assert challenge_pace(..., FEW, 0.5, 1.0, **how) is None
    assert challenge_pace(lambda epochs: None, FEW, 0.5, 1.0, **how) is None
    assert capsys.readouterr().out.splitlines() == ["challenge: not yet answered"] * 2
    assert challenge_pace(steady(16, 1e-9), FEW, 0.9, 1.0, epochs=1, **how) is None
    assert "after 1 epochs at best; the goal is 90%" in capsys.readouterr().out
    seconds = challenge_pace(steady(16, 0.4), FEW, 0.0, 1.0, **how)
    said = capsys.readouterr().out
    assert f"{1 / seconds:.2f} times as fast as the best" in said and "on 4 ranks" in said


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
    for seed, reached in zip((3, 4), result["sgd"][0.4], strict=True):
        expected = train(DIGITS, rate=0.4, seed=seed, epochs=2, batch=8).history[-1]
        assert reached == expected["test_accuracy"]
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


# --- paces: how a batch and a rate change


def test_paces_say_batch_and_rate():
    assert [decaying(32, 0.8, 4, 2)(e) for e in (0, 1.9, 2, 4)] == [
        (32, 0.8), (32, 0.8), (32, 0.2), (32, 0.05),
    ]  # fmt: skip
    assert [growing(32, 0.8, 4, 2)(e) for e in (0, 1.9, 2, 4)] == [
        (32, 0.8), (32, 0.8), (128, 0.8), (512, 0.8),
    ]  # fmt: skip


def test_a_scaled_rate_climbs_to_the_rate_times_the_batch():
    pace = scaled(8 * BATCH, 0.5, warm_up=2)
    assert [pace(e)[1] for e in (0, 1, 2, 5)] == pytest.approx([0.5, 2.25, 4, 4])
    assert scaled(8 * BATCH, 0.5, warm_up=0)(0) == (8 * BATCH, 4)
    assert scaled(BATCH, 0.5)(0.3) == (BATCH, 0.5)


@pytest.mark.parametrize("optimizer, rate", [("sgd", 0.5), ("momentum", 0.05)])
def test_a_steady_pace_is_what_train_does(optimizer, rate):
    plan = {"seed": 2, "epochs": 8, "optimizer": optimizer}
    looks = follow(steady(4, rate), FEW, **plan)
    result = train(FEW, batch=4, rate=rate, **plan)
    assert [look.epochs for look in looks] == [k / 4 for k in range(1, 33)]
    assert looks[-1].steps == 320
    results = [row["test_accuracy"] for row in result.history]
    assert [look.accuracy for look in looks[3::4]] == results and results[-1] > 0.5


def test_batches_grow_and_steps_are_counted():
    looks = follow(growing(16, 0.1, 4, 1), FEW, epochs=2)
    assert [look.batch for look in looks][3:5] == [16, 64]
    assert looks[3].steps == 10 and looks[-1].steps == 10 + 3


def test_a_training_ends_at_its_target_or_after_its_epochs():
    first = follow(steady(16, 0.4), FEW, target=0.0)
    assert len(first) == 1 and first[0].epochs == pytest.approx(0.3, abs=0.1)
    missed = follow(steady(160, 1e-9), FEW, target=0.99, epochs=2)
    assert missed[-1].epochs == 2 and missed[-1].accuracy < 0.5


def test_a_look_may_take_some_of_the_test_images():
    some, all_of = (follow(steady(8, 0.4), FEW, epochs=6, every=n)[-1].accuracy for n in (8, 1))
    assert some * 5 == pytest.approx(round(some * 5)) and all_of * 40 == round(all_of * 40)
    result = train(FEW, batch=8, rate=0.4, epochs=6).params
    expected = accuracy("vector", result, FEW.test_images[::8], FEW.test_labels[::8])
    assert some == expected


def test_impossible_paces_are_refused():
    with pytest.raises(ValueError, match="batch: expected a whole number of at least 1, got 0"):
        follow(steady(0, 0.1), FEW)
    with pytest.raises(ValueError, match="epochs: expected"):
        follow(steady(8, 0.1), FEW, epochs=0)
    with pytest.raises(ValueError, match="optimizer: expected one of"):
        follow(steady(8, 0.1), FEW, optimizer="newton")
