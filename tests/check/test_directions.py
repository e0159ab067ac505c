import numpy as np
import pytest

from cnnlab.lessons.lesson_53 import FORMULAS, direction, path
from cnnlab.training import OPTIMIZERS
from cnnlab.training.optimizers import Adam, Momentum, Nesterov, RMSProp


def test_every_optimizer_has_a_formula():
    assert FORMULAS.keys() == OPTIMIZERS.keys()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_is_its_formula(name):
    verdict = direction(name, OPTIMIZERS[name].load())
    assert verdict and "as its formula" in verdict.text


def ones(w, t):
    return np.ones_like(w)


def test_first_steps_by_hand():
    start = np.zeros(1)
    after = {name: f(start, ones, 0.1, 2)[0] for name, f in FORMULAS.items()}
    assert after["sgd"] == pytest.approx(-0.2)
    assert after["momentum"] == pytest.approx(-0.1 - 0.19)
    assert after["nesterov"] == pytest.approx(-0.29 - 0.1 * 0.9 * 1.9)
    assert after["adagrad"] == pytest.approx(-0.1 - 0.1 / np.sqrt(2))
    assert after["rmsprop"] == pytest.approx(-0.1 / 0.1 - 0.1 / np.sqrt(0.0199))
    assert after["adam"] == pytest.approx(-0.2)


@pytest.mark.parametrize(
    "name, make",
    [
        ("adam", lambda rate: Adam(rate, epsilon=1e-7)),
        ("adam", lambda rate: Adam(rate, beta2=0.99)),
        ("momentum", Nesterov),
        ("nesterov", Momentum),
        ("rmsprop", lambda rate: RMSProp(rate, beta=0.9)),
        ("adagrad", RMSProp),
    ],
)
def test_another_direction_is_told(name, make):
    verdict = direction(name, make)
    assert not verdict and "not as its formula" in verdict.text


def test_a_path_begins_at_its_start():
    places = path(OPTIMIZERS["sgd"].load()(0.5), np.array([1.0, 2.0]), lambda w, t: w, 2)
    np.testing.assert_allclose(places, [[1, 2], [0.5, 1], [0.25, 0.5]])
