import io
import sys

import numpy as np
import pytest

from cnnlab import training
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.network import Network

DIGITS = load("digits", 330, 100)


def test_training_lowers_the_loss_and_tells_its_history():
    run = training.train(DIGITS, "vector", epochs=8, batch=8, rate=0.4)
    assert [row["epoch"] for row in run.history] == list(range(1, 9))
    assert run.history[-1]["loss"] < 0.5 * run.history[0]["loss"]
    assert run.history[-1]["test_accuracy"] > 0.5
    for row in run.history:
        assert row["images_per_second"] == pytest.approx(330 / row["seconds"])
    right = training.accuracy("vector", run.params, DIGITS.test_images, DIGITS.test_labels)
    assert right == run.history[-1]["test_accuracy"]


def test_every_strategy_learns_the_same_and_the_same_again():
    runs = {
        name: training.train(DIGITS, name, epochs=1, batch=32, seed=5).params.flat
        for name in KERNELS
    }
    again = training.train(DIGITS, "vector", epochs=1, batch=32, seed=5).params.flat
    assert (again == runs["vector"]).all()
    for name, params in runs.items():
        np.testing.assert_allclose(params, runs["reference"], atol=2e-5, err_msg=name)


def test_seed_and_epoch_change_the_order(monkeypatch):
    orders = []

    def step(strategy, params, grads, x, labels, rate):
        orders.append(labels.tolist())
        return 1.0

    monkeypatch.setattr(training, "sgd_step", step)
    training.train(DIGITS, "loops", epochs=2, batch=100, seed=1)
    training.train(DIGITS, "loops", epochs=1, batch=100, seed=2)
    assert [len(o) for o in orders] == 3 * [100, 100, 100, 30]
    epochs = [[n for part in orders[i : i + 4] for n in part] for i in (0, 4, 8)]
    assert len({tuple(e) for e in epochs}) == 3
    assert {tuple(sorted(e)) for e in epochs} == {tuple(sorted(DIGITS.train_labels))}


def test_a_step_goes_against_the_mean_gradient():
    net, strategy = Network(), KERNELS["loops"]
    params, grads = net.parameters(), net.zeros()
    before = params.flat.copy()
    x, labels = DIGITS.train_images[:8], DIGITS.train_labels[:8]
    training.sgd_step(strategy, params, grads, x, labels, 0.5)
    training.loss_and_gradients(strategy, net.parameters(), x, labels, grads)
    np.testing.assert_allclose(params.flat, before - 0.5 * grads.flat / 8, atol=1e-7)


def test_the_data_stay_as_they_are():
    kept = DIGITS.train_images.copy(), DIGITS.train_labels.copy()
    training.train(DIGITS, "reference", batch=330)
    assert (DIGITS.train_images == kept[0]).all() and (DIGITS.train_labels == kept[1]).all()


def test_a_bar_with_loss_and_speed_shows_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    training.train(DIGITS, "vector", batch=30)
    assert "epoch 1" in sys.stderr.getvalue() and "loss=" in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    training.train(DIGITS, "vector", batch=30)
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"kernels": "fast"}, "kernels should be one of reference, loops, vector.*got 'fast'"),
        ({"epochs": 0}, "epochs should be a whole number of at least 1, got 0"),
        ({"batch": 2.5}, "batch should be a whole number of at least 1, got 2.5"),
        ({"batch": 331}, "batch should be at most the 330 images, got 331"),
        ({"rate": 0}, "rate should be a positive number, got 0"),
        ({"rate": float("nan")}, "rate should be a positive number, got nan"),
    ],
)
def test_an_impossible_plan_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        training.train(DIGITS, **{"kernels": "loops"} | wrong)
