import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from cnnlab import pool, training
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.network import Network, forward, loss_and_gradients

DIGITS = load("digits", 330, 100)
READ_ONLY = load("digits", 330, 100)
for array in (READ_ONLY.train_images, READ_ONLY.train_labels, READ_ONLY.test_images):
    array.flags.writeable = False


def test_all_is_compiled_before_the_clock_starts(monkeypatch):
    log = []

    def step(strategy, params, images, labels, chosen, grads):
        types = [(array.dtype, array.flags.writeable) for array in (images, labels, chosen)]
        log.append((len(chosen), *types))
        return 1.0

    def clock():
        log.append("clock")
        return float(len(log))

    monkeypatch.setattr(training, "chosen_gradients", step)
    monkeypatch.setattr(training, "time", SimpleNamespace(perf_counter=clock))
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


def test_every_strategy_learns_the_same_and_the_same_again():
    runs = {
        name: training.train(DIGITS, name, epochs=2, batch=32, seed=5).params.flat
        for name in KERNELS
    }
    for name, params in runs.items():
        again = training.train(DIGITS, name, epochs=2, batch=32, seed=5).params.flat
        assert again.tobytes() == params.tobytes()
        np.testing.assert_allclose(params, runs["reference"], atol=2e-5, err_msg=name)
    assert abs(runs["loops"] - Network().parameters(5).flat).max() > 0.1


def test_a_network_of_ones_own_can_be_trained():
    net = Network(filters=2, kernel=3, pool=6, classes=12)
    run = training.train(DIGITS, "loops", network=net)
    assert run.params.network is net and run.params.dense_w.shape == (12, 2 * 4 * 4)
    with pytest.raises(ValueError, match=r"x should have shape .*20, 28"):
        training.train(DIGITS, "loops", network=Network(height=20))


def test_a_prediction_is_the_most_likely_class_of_each_image():
    params = Network().parameters(2)
    images, labels = DIGITS.test_images, DIGITS.test_labels
    likely = forward(KERNELS["loops"], params, images).dense.argmax(1)
    for batch in (1000, 100, 7):
        found = training.predict("loops", params, images, batch)
        assert found.dtype == np.int64 and (found == likely).all()
    right = sum(int(a == b) for a, b in zip(likely, labels, strict=True)) / 100
    assert training.accuracy(KERNELS["loops"], params, images, labels) == pytest.approx(right)
    assert training.accuracy("loops", params, images, likely) == 1
    with pytest.raises(ValueError, match=r"x should have shape .*N > 0"):
        training.predict("loops", params, images[:0])


def test_seed_and_epoch_change_the_order(monkeypatch):
    orders = []

    def steps(strategy, params, grads, images, labels, order, batch, rate, ranks):
        orders.append((batch, tuple(order)))
        return 1.0

    monkeypatch.setattr(training, "sgd_steps", steps)
    monkeypatch.setattr(training, "warm_up", lambda *arguments: None)
    training.train(DIGITS, "vector", epochs=2, batch=100, seed=1)
    training.train(DIGITS, "vector", epochs=1, batch=100, seed=2)
    assert [batch for batch, _ in orders] == [100] * 3 and len(set(orders)) == 3
    assert {tuple(sorted(order)) for _, order in orders} == {tuple(range(330))}


@pytest.mark.parametrize("name, several", [("vector", 100), ("loops", 10)])
def test_an_epoch_of_many_batches_goes_through_all_images(name, several, monkeypatch):
    seen = []
    monkeypatch.setattr(training, "IN_A_ROW", 105)
    monkeypatch.setattr(training, "sgd_steps", lambda *a: seen.append(a[5]) or 1.0)
    training.train(DIGITS, name, batch=10)
    epoch = seen[1:]  # after the warm-up
    assert [len(part) for part in epoch] == [several] * (330 // several) + [30] * (several == 100)
    assert sorted(np.concatenate(epoch)) == list(range(330))


def test_a_step_goes_against_the_mean_gradient():
    net, strategy = Network(), KERNELS["loops"]
    params, grads = net.parameters(), net.zeros()
    before = params.flat.copy()
    x, labels = DIGITS.train_images[:8], DIGITS.train_labels[:8]
    training.sgd_step(strategy, params, grads, x, labels, 0.5)
    loss_and_gradients(strategy, net.parameters(), x, labels, grads)
    np.testing.assert_allclose(params.flat, before - 0.5 * grads.flat / 8, atol=1e-7)


@pytest.mark.parametrize("name", ["vector", "threads"])
@pytest.mark.parametrize("batch", [1, 5, 16, 40, 64])
def test_steps_without_a_way_back_to_python_are_the_same_steps(name, batch):
    strategy, net = KERNELS[name], Network()
    order = np.random.default_rng(0).permutation(330)[: 2 * batch + 3]
    images, labels = DIGITS.train_images, DIGITS.train_labels
    with pool.threads(pool.size() if name == "threads" else 1):
        fused, step = net.parameters(1), net.zeros()
        loss = training.sgd_steps(strategy, fused, step, images, labels, order, batch, 0.5)
        grads = net.zeros()
        params, total = net.parameters(1), 0.0
        for first in range(0, len(order), batch):
            chosen = order[first : first + batch]
            x = strategy.take(images, chosen)
            total += training.sgd_step(strategy, params, grads, x, labels[chosen], 0.5)
    assert (fused.flat == params.flat).all() and loss == pytest.approx(total, rel=1e-12)
    assert (step.flat == grads.flat).all()  # both hold the last step


def test_steps_on_images_that_are_not_there_are_refused():
    net, strategy = Network(), KERNELS["vector"]
    params = net.parameters()
    before = params.flat.copy()
    arguments = strategy, params, net.zeros(), DIGITS.train_images, DIGITS.train_labels
    for wrong in (np.array([0, 330]), np.array([-1, 5])):
        with pytest.raises(ValueError, match=r"order should number images 0\.\.329, got"):
            training.sgd_steps(*arguments, wrong, 2, 0.5)
    with pytest.raises(TypeError, match="order should have dtype int64"):
        training.sgd_steps(*arguments, np.arange(4, dtype=np.int32), 2, 0.5)
    with pytest.raises(ValueError, match="labels should have shape"):
        training.sgd_steps(*arguments[:4], DIGITS.train_labels[:5], np.arange(4), 2, 0.5)
    assert (params.flat == before).all()


@pytest.mark.parametrize("name", KERNELS)
def test_the_data_stay_as_they_are(name):
    data = [a.copy() for a in vars(DIGITS).values() if isinstance(a, np.ndarray)]
    training.train(READ_ONLY, name, batch=100)
    now = [a for a in vars(DIGITS).values() if isinstance(a, np.ndarray)]
    assert len(now) == 4 and all((a == b).all() for a, b in zip(now, data, strict=True))


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
        ({"kernels": "fast"}, "kernels should be one of reference, loops, vector.*got 'fast'"),
        ({"epochs": 0}, "epochs should be a whole number of at least 1, got 0"),
        ({"batch": 2.5}, "batch should be a whole number of at least 1, got 2.5"),
        ({"batch": 331}, "batch should be at most the 330 images, got 331"),
        ({"rate": 0}, "rate should be a positive number, got 0"),
        ({"rate": float("nan")}, "rate should be a positive number, got nan"),
        ({"rate": float("inf")}, "rate should be a positive number, got inf"),
        ({"rate": "0.1"}, "rate should be a positive number, got '0.1'"),
        ({"epochs": "2"}, "epochs should be a whole number of at least 1, got '2'"),
        ({"batch": -1}, "batch should be a whole number of at least 1, got -1"),
        ({"seed": -1}, "seed should be a whole number of at least 0, got -1"),
        ({"seed": 0.5}, "seed should be a whole number of at least 0, got 0.5"),
        ({"kernels": None}, "kernels should be one of reference, loops, vector.*got None"),
    ],
)
def test_an_impossible_plan_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        training.train(DIGITS, **{"kernels": "loops"} | wrong)
