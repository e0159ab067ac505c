"""Threads that share parameters: counted, and tried on the network."""

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.measure.hogwild import Samples, unlocked
from cnnlab.network import Network
from cnnlab.training import Replica, Sgd, accuracy


@pytest.mark.parametrize("n", [16, 500])
def test_one_thread_loses_nothing_and_learns(n):
    problem = Samples(n, n_samples=20_000)
    problem(1)
    assert problem.lost == 0 and problem.error < 0.1
    assert (np.sort(problem.places, 1) == np.arange(16)).all() == (n == 16)
    first = problem.w.copy()
    problem(1)  # begins anew
    assert problem.lost == 0 and np.array_equal(problem.w, first)


def test_what_is_lost_is_a_share_of_all_additions():
    problem = Samples(16, n_samples=100)
    problem(1)
    problem.steps[3] -= 16
    assert problem.lost == pytest.approx(16 / 1600)


def test_threads_apart_learn_from_their_share_and_a_call_begins_anew():
    digits = load("digits", 400, 100)
    train, test = unlocked(digits, 2, shared=False, rate=0.4)
    params = Network().parameters(0)
    held = digits.train_images, digits.train_labels, 8, Sgd(0.4)
    order = np.random.default_rng(0).permutation(400)
    Replica(KERNELS["vector"], params, *held).loop()(np.ascontiguousarray(order[::2]))
    expected = accuracy("vector", params, digits.test_images, digits.test_labels)
    for _ in range(2):
        train()
        assert test() == expected


def test_shared_parameters_take_the_steps_of_both_threads():
    digits = load("digits", 1437, 360)
    found = []
    for shared in (True, False):
        train, test = unlocked(digits, 2, shared=shared, rate=0.4)
        train()
        found.append(test())
    assert found[0] > found[1] + 0.05
