import numpy as np
import pytest

from cnnlab.training.search import Generations, Here, PopulationBased, run, truncation
from tests.training.search.examples import SPACE, hill

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [1, 2, 5, 10, 13])
def test_the_worst_fifth_copies_the_best_fifth(size):
    scores = RNG.permutation(size).astype(float)
    few = max(1, size // 5)
    for me in range(size):
        copied = {truncation(scores, me, RNG) for _ in range(60)}
        if scores[me] < few and size > 1:
            assert {scores[k] for k in copied} == set(range(size - few, size))
        else:
            assert copied == {me}


def make(**options):
    plan = {"epochs": 2, "budget": 200, "size": 10} | options
    return PopulationBased(SPACE.draw, SPACE.perturb, **plan)


def test_a_copy_goes_on_from_the_better_ones_latest_trial_with_varied_hyperparameters():
    search = make(size=5)
    first = [search.ask() for _ in range(5)]
    for trial, score in zip(first, [3, 0, 4, 1, 2], strict=True):
        search.tell(trial, float(score))
    second = [search.ask() for _ in range(5)]
    assert [trial.parent for trial in second] == [0, 2, 2, 3, 4]
    factor = second[1].config["a"] / first[2].config["a"]
    assert min(abs(factor - 0.8), abs(factor - 1.2)) < 1e-9
    assert [second[k].config == first[k].config for k in (0, 2, 3, 4)] == [True] * 4


def test_nobody_waits_for_the_others():
    search = make(size=3)
    trials = [search.ask() for _ in range(3)]
    assert search.ask() is None
    search.tell(trials[1], 0.5)
    assert search.ask().parent == 1 and search.ask() is None


def test_every_member_has_its_turns():
    search = make()
    run(Generations(search, 10), Here(hill))
    assert {one.turns for one in search.members} == {10}


def test_the_population_gathers_at_the_best_hyperparameters():
    search = make(budget=1200)
    start = [np.log(one.config["a"]) ** 2 for one in search.members]
    run(search, Here(hill))
    end = [np.log(one.config["a"]) ** 2 for one in search.members]
    assert np.median(end) < np.median(start) / 10
