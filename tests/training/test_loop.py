import io
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cnnlab import training
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import forward
from cnnlab.network import LENET5, NETWORKS, Conv, Dense, MaxPool, Network, Pad, ReLU, Sigmoid
from cnnlab.training import OPTIMIZERS, loop, method
from tests.networks import report_network

DIGITS = load("digits", 330, 100)
READ_ONLY = load("digits", 330, 100)
for array in (READ_ONLY.train_images, READ_ONLY.train_labels, READ_ONLY.test_images):
    array.flags.writeable = False


def test_all_is_compiled_before_the_clock_starts(monkeypatch):
    log = []

    def gradients(replica, chosen):
        log.append((len(chosen), replica.images.dtype, replica.images.flags.writeable))
        return 1.0

    def clock():
        log.append("clock")
        return float(len(log))

    monkeypatch.setattr(training.Replica, "gradients", gradients)
    monkeypatch.setattr(method, "time", SimpleNamespace(perf_counter=clock))
    for batch, sizes in ((64, [64] * 5 + [10]), (330, [330]), (33, [33] * 10)):
        log.clear()
        run = training.train(READ_ONLY, "loops", batch=batch)
        begin, end = (i for i, entry in enumerate(log) if entry == "clock")
        steps = log[begin + 1 : end]
        assert [entry[0] for entry in steps] == sizes
        assert set(steps) == set(log[:begin]) and end == len(log) - 1
        assert run.history[0]["seconds"] == end - begin


def test_training_lowers_the_loss_and_tells_its_history():
    run = training.train(DIGITS, "vector", epochs=8, batch=8, rate=0.4)
    assert [row["epoch"] for row in run.history] == list(range(1, 9))
    assert run.history[-1]["loss"] < 0.5 * run.history[0]["loss"]
    assert run.history[-1]["test_accuracy"] > 0.5
    for row in run.history:
        assert row["images_per_second"] == pytest.approx(330 / row["seconds"])
    right = training.accuracy("vector", run.params, DIGITS.test_images, DIGITS.test_labels)
    assert right == run.history[-1]["test_accuracy"]


ENOUGH = {"report": 0.8, "lenet5": 0.9, "eight": 0.8, "inception": 0.9, "residual": 0.9}


@pytest.mark.parametrize("name", [*NETWORKS, "new"])
def test_every_network_learns_with_its_defaults(name):
    """One without a rate of its own, too."""
    layers = Conv(8, 5), ReLU(), Pad(1), MaxPool(3, 2), Dense(24), ReLU(), Dense(10), Sigmoid()
    network = NETWORKS.get(name, Network(layers))
    run = training.train(load("digits"), network=network, epochs=4)
    assert run.history[-1]["test_accuracy"] > ENOUGH.get(name, 0.7)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_usual_rate_is_the_optimizers_in_proportion_to_the_networks(optimizer):
    usual = OPTIMIZERS[optimizer].load().usual
    assert loop.usual_rate(optimizer, Network()) == usual
    own = Network((*LENET5.layers,), rate=0.1)
    assert loop.usual_rate(optimizer, own) == pytest.approx(usual / 4)


@pytest.mark.parametrize("batch, rate", [(8, 3.2), (64, 0.05), (64, 3.2), (330, 3.2)])
def test_large_rates_are_bearable_up_to_twice_those_of_the_lessons(batch, rate):
    assert len(training.train(DIGITS, epochs=2, batch=batch, rate=rate).history) == 2


@pytest.mark.parametrize("loss, largest", [(17, 1), (np.nan, 1), (3, 2**25), (3, -np.inf)])
def test_an_epoch_that_led_nowhere_is_told_by_its_loss_or_its_parameters(loss, largest):
    params = Network().zeros()
    loop.check_course(1, 16.0, params)
    params.flat[-1] = largest
    with pytest.raises(training.Diverged, match="diverged at epoch 7: expected"):
        loop.check_course(7, loss, params)


def test_a_network_of_many_classes_may_know_nothing_at_first():
    params = report_network(classes=100).zeros()
    loop.check_course(1, 100 * np.log(2), params)


def test_every_strategy_learns_the_same_and_the_same_again():
    how = {"epochs": 2, "batch": 16, "rate": 1.0, "seed": 5}
    images, labels = READ_ONLY.train_images[:88], READ_ONLY.train_labels[:88]
    few = replace(READ_ONLY, train_images=images, train_labels=labels)
    runs = {name: training.train(few, name, **how).params.flat for name in KERNELS}
    for name, params in runs.items():
        assert training.train(few, name, **how).params.flat.tobytes() == params.tobytes()
        np.testing.assert_allclose(params, runs["reference"], atol=2e-5, err_msg=name)
    for whole, now in zip(vars(DIGITS).values(), vars(READ_ONLY).values(), strict=True):
        assert np.array_equal(whole, now)  # the data stay as they are
    assert abs(runs["loops"] - Network().parameters(5).flat).max() > 0.1


def test_seed_and_epoch_change_the_order(monkeypatch):
    orders = []
    monkeypatch.setattr(training.Method, "steps", lambda m, replica, o: orders.append(o) or 1.0)
    monkeypatch.setattr(loop, "warm_up", lambda *arguments: None)
    training.train(DIGITS, "vector", epochs=2, batch=100, seed=1)
    training.train(DIGITS, "vector", epochs=1, batch=100, seed=2)
    assert len({tuple(order) for order in orders}) == 3
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(330))}


@pytest.mark.parametrize("name, several", [("vector", 100), ("loops", 10)])
def test_an_epoch_of_many_batches_goes_through_all_images(name, several, monkeypatch):
    orders = []
    monkeypatch.setattr(training.Method, "steps", lambda m, replica, o: orders.append(o) or 1.0)
    monkeypatch.setattr(method, "IN_A_ROW", 105)
    training.train(DIGITS, name, batch=10)
    epoch = orders[1:]  # after the warm-up
    assert [len(part) for part in epoch] == [several] * (330 // several) + [30] * (several == 100)
    assert sorted(np.concatenate(epoch)) == list(range(330))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "stream, progress, shown",
    [
        (Terminal, None, True),
        (io.StringIO, None, False),
        (Terminal, False, False),
        (io.StringIO, True, True),
    ],
)
def test_a_bar_with_loss_and_speed_shows_on_a_terminal_only_or_as_asked(
    monkeypatch, capsys, stream, progress, shown
):
    monkeypatch.setattr(sys, "stderr", stream())
    training.train(DIGITS, "loops", batch=30, progress=progress)
    said = sys.stderr.getvalue()
    if shown:
        assert "epoch 1" in said and "loss=" in said and "image/s" in said and "330/330" in said
    else:
        assert said == ""
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"kernels": "fast"}, "kernels: expected one of reference, .*got 'fast'"),
        ({"epochs": 0}, "epochs: expected a whole number of at least 1, got 0"),
        ({"batch": 2.5}, "batch: expected a whole number of at least 1, got 2.5"),
        ({"batch": 331}, "batch: expected at most the 330 images, got 331"),
        ({"rate": 0}, "rate: expected a positive number, got 0"),
        ({"optimizer": "newton"}, "optimizer: expected one of sgd, .*, got 'newton'"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
        ({"seed": 0.5}, "seed: expected a whole number of at least 0, got 0.5"),
    ],
)
def test_an_impossible_plan_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        training.train(DIGITS, **{"kernels": "loops"} | wrong)


def test_a_prediction_is_the_most_likely_class_of_each_image():
    params = Network().parameters(2)
    images, labels = DIGITS.test_images, DIGITS.test_labels
    likely = forward(KERNELS["loops"], params, images)["dense_sigmoid"].argmax(1)
    for batch in (1000, 100, 99, 7):
        result = training.predict("loops", params, images, batch)
        assert result.dtype == np.int64 and (result == likely).all()
    right = sum(int(a == b) for a, b in zip(likely, labels, strict=True)) / 100
    assert training.accuracy(KERNELS["loops"], params, images, labels) == pytest.approx(right)
    assert training.accuracy("loops", params, images, likely) == 1
    with pytest.raises(ValueError, match=r"x: expected shape .*N > 0"):
        training.predict("loops", params, images[:0])
