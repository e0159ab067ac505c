"""The optimisers in the cells of lesson 53 are the package's."""

from types import SimpleNamespace

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.lessons import lesson_53 as lesson
from cnnlab.ranks.virtual import World
from cnnlab.training import OPTIMIZERS
from tests.lessons import breaking
from tests.training.test_optimizers import START, STEPS, slope, stepped

FEW = load("digits", 160, 40)


@pytest.fixture(scope="module")
def page():
    """What the lesson's cells of matter define."""
    return breaking.defined("53", np=np, SimpleNamespace=SimpleNamespace)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_of_the_package_is_that_of_the_page(page, name):
    make = OPTIMIZERS[name].load()
    expected, state = START.copy(), page["fresh"]()
    for t in range(STEPS):
        page[name](expected, slope(expected, t), state, make.usual)
    assert np.abs(expected - START).max() > 1e-2
    np.testing.assert_allclose(stepped(make(make.usual)), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(stepped(make(make.usual), np.float32), expected, atol=1e-4)


def test_first_steps_by_hand(page):
    after = {}
    for name in OPTIMIZERS:
        w, state = np.zeros(1), page["fresh"]()
        for _ in range(2):
            page[name](w, np.ones(1), state, 0.1)
        after[name] = w[0]
    assert after["sgd"] == pytest.approx(-0.2)
    assert after["momentum"] == pytest.approx(-0.1 - 0.19)
    assert after["nesterov"] == pytest.approx(-0.1 * 1.9 - 0.1 * (1 + 0.9 * 1.9))
    assert after["adagrad"] == pytest.approx(-0.1 - 0.1 / np.sqrt(2))
    assert after["rmsprop"] == pytest.approx(-0.1 / 0.1 - 0.1 / np.sqrt(0.0199))
    assert after["adam"] == pytest.approx(-0.2)


def test_a_step_of_ranks_is_the_packages(page):
    chosen = np.arange(32)

    def program(comm):
        mine, theirs = lesson.replica(FEW, 3), lesson.replica(FEW, 3)
        page["rank_step"](comm, mine, page["fresh"](), page["sgd"], chosen, 1.0)
        DataParallel(comm).step(theirs, chosen)  # at the rate 1
        return mine.params.flat, theirs.params.flat

    for mine, theirs in World(4).run(program):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


def test_a_mistake_is_named_by_what_it_does():
    assert lesson.judged("nesterov", lesson.in_two_places, lesson.answer("nesterov", {})) == ""
    for name, drive in (("corrected", lesson.with_rates), ("adamw", lesson.through_sizes)):
        for words, changes in lesson.MISTAKES[name].items():
            assert lesson.judged(name, drive, lesson.answer(name, changes)) == words
