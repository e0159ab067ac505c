import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.measure.bench import Contestant, exact_gradients
from cnnlab.training import RATE, method


def contestant(name, n_images, batch, n_threads=1):
    return Contestant(KERNELS[name], load("digits", n_images, 10), batch, n_threads)


def test_batches_cycle_through_all_images(monkeypatch):
    monkeypatch.setattr(method, "IN_A_ROW", 45)
    one = contestant("loops", 50, 20)
    first, second, third = (one.next_batches() for _ in range(3))
    assert len(set(first) | set(second)) == 40 and (first == third).all()
    many = contestant("vector", 50, 20)
    assert many.n_steps == 2 and len(set(many.next_batches())) == 40  # two steps in a call
    few = contestant("vector", 30, 20)
    assert len(few.next_batches()) == 40 and set(few.next_batches()) == set(range(30))


@pytest.mark.parametrize("name, n_threads", [("loops", 1), ("threads", 2)])
def test_only_parallel_strategies_run_on_several_threads(name, n_threads):
    assert contestant(name, 20, 10, 2).n_threads == n_threads


def test_a_call_trains_on_its_batches():
    one = contestant("loops", 40, 10)
    before = one.replica.params.copy()
    one.steps()
    x = one.replica.images[one.order[:10]]
    grads = exact_gradients(before, x, one.replica.labels[one.order[:10]])
    expected = before.flat - RATE / 10 * grads.flat
    np.testing.assert_allclose(one.replica.params.flat, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["loops", "vector", "threads"])
def test_a_right_contestant_passes_its_check(name):
    contestant(name, 40, 10).check()


def test_wrong_gradients_are_found(monkeypatch):
    one = contestant("loops", 40, 10)
    monkeypatch.setattr(one.strategy.module, "conv_backward_bias", lambda dz, db: db.fill(0))
    with pytest.raises(AssertionError, match="gradients of loops"):
        one.check()


def test_a_wrong_step_is_found(monkeypatch):
    one = contestant("vector", 40, 10)
    monkeypatch.setattr(one.replica.optimizer, "rate", 2 * RATE)
    with pytest.raises(AssertionError, match="parameters after a step of vector"):
        one.check()
