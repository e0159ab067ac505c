import sys

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.network import Network
from cnnlab.runtime.registry import Entry
from cnnlab.training import OPTIMIZERS, Sgd, checkpoint, train

DIGITS = load("digits", 100, 50)


def test_sgd_subtracts_the_rate_times_the_mean_gradient():
    params, grads = Network().parameters(), Network().parameters(1)
    before, gradient = params.flat.copy(), grads.flat.copy()
    Sgd(0.5).update(params, grads, 8)
    np.testing.assert_allclose(params.flat, before - 0.5 / 8 * gradient, atol=1e-8)
    np.testing.assert_allclose(grads.flat, 0.5 / 8 * gradient)


def test_every_optimizer_can_be_made_with_a_rate():
    for name, entry in OPTIMIZERS.items():
        assert entry.name == name and entry.summary
        assert entry.load()(0.25).rate == 0.25


class Counting(Sgd):
    """An optimiser with a state: step k goes k times as far."""

    loop = None

    def __init__(self, rate):
        super().__init__(rate)
        self.state["steps"] = np.zeros(1)

    def update(self, params, grads, n_images):
        self.state["steps"][0] += 1
        grads.flat *= self.rate * self.state["steps"][0] / n_images
        params.flat -= grads.flat


def test_the_state_of_an_optimizer_is_kept_too(tmp_path, monkeypatch):
    entry = Entry("counting", "for this test", f"{__name__}:Counting")
    monkeypatch.setitem(OPTIMIZERS, "counting", entry)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Counting.__module__])
    how, file = {"seed": 3, "rate": 1e-3, "optimizer": "counting"}, tmp_path / "training.npz"
    train(DIGITS, epochs=2, save=file, **how)
    resumed, unbroken = train(DIGITS, epochs=3, resume=file, **how), train(DIGITS, epochs=3, **how)
    assert np.array_equal(resumed.params.flat, unbroken.params.flat)
    assert checkpoint.load(file).state["steps"] == 14
    with pytest.raises(ValueError, match=r"expected optimizer sgd, .* was trained with counting"):
        train(DIGITS, epochs=3, resume=file, seed=3, rate=1e-3)
    with pytest.raises(ValueError, match="optimizer: expected one of sgd, counting, got 'adam'"):
        train(DIGITS, optimizer="adam")
