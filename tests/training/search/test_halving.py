from collections import Counter

import numpy as np

from cnnlab.training.search import Halving, Here, run
from tests.training.search.examples import SPACE, hill


def make(budget=400, **options):
    return Halving(SPACE.draw, 9, budget, **options)


def test_rungs_lie_a_factor_apart_up_to_the_longest_training():
    assert make().rungs == [1, 3, 9]
    assert make(first=2, eta=2).rungs == [2, 4, 8]
    assert make(first=9).rungs == [9]


def test_only_the_best_third_of_a_rung_goes_on_and_each_once():
    done = run(make(), Here(hill))
    parents = Counter(one.trial.parent for one in done if one.trial.parent is not None)
    assert set(parents.values()) == {1}
    on = Counter(one.trial.epochs for one in done)
    # Some are promoted that later ones push out of the best third: a few too many.
    assert abs(on[2] - on[1] / 3) < 9 and abs(on[6] - on[2] / 3) < 9


def test_a_promotion_goes_on_with_its_configuration_for_the_epochs_that_are_missing():
    done = {one.trial.number: one.trial for one in run(make(), Here(hill))}
    for trial in done.values():
        if trial.parent is not None:
            parent = done[trial.parent]
            assert trial.config == parent.config
            assert (parent.epochs, trial.epochs) in {(1, 2), (2, 6)}


def test_it_promotes_the_best_before_it_begins_anew_and_the_highest_rung_first():
    search = make(1000)
    first = [search.ask() for _ in range(9)]
    for trial in first:
        search.tell(trial, float(trial.number))
    second = [search.ask() for _ in range(4)]
    assert [trial.parent for trial in second] == [8, 7, 6, None]
    more = [second[3], search.ask(), search.ask()]
    for trial in [*second[:3], *more]:
        search.tell(trial, float(trial.number))
    assert [search.ask().parent for _ in range(2)] == [second[2].number, more[2].number]


def test_it_finds_better_configurations_than_random_draws():
    done = run(make(), Here(hill))
    far = {one.trial.number: one.report["test"] for one in done}
    drawn = [far[one.trial.number] for one in done if one.trial.parent is None]
    longest = [far[one.trial.number] for one in done if one.trial.epochs == 6]
    assert np.median(longest) < np.median(drawn) / 4
