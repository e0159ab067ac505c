import functools
import re

import numpy as np
import pytest

from cnnlab.check.searching import promises
from cnnlab.measure import search_race
from cnnlab.measure.search_race import bands, leaders, luck, trainer, verdicts, wins
from cnnlab.training.search import Done, Here, RandomSearch, Trial, run


def done(*rows):
    """A search that was told (epochs, score, test), one after the other."""
    return [
        Done(Trial(k, {}, epochs, None, 0), score, {"test": test})
        for k, (epochs, score, test) in enumerate(rows)
    ]


ONE = done((2, 0.5, 0.4), (2, 0.4, 0.9), (6, 0.8, 0.7))


def test_the_leader_is_chosen_by_the_score_and_not_by_the_test():
    assert [tuple(one) for one in leaders(ONE)] == [
        (2, 0.5, 0.4, 0), (4, 0.5, 0.4, 0), (10, 0.8, 0.7, 2)
    ]  # fmt: skip


def test_bands_are_steps_that_begin_at_zero():
    epochs, scores = bands([ONE, done((5, 0.6, 0.6), (10, 0.7, 0.6))], n=11)
    assert list(epochs) == list(range(11))
    assert list(scores[0]) == [0, 0] + [0.5] * 8 + [0.8]
    assert list(scores[1]) == [0] * 5 + [0.6] * 6


def test_a_tie_is_half_a_pair():
    assert wins([0.5, 0.6], [0.3, 0.55]) == 3 and wins([0.5], [0.5, 0.4]) == 1.5


def test_luck_is_the_share_of_all_ways_to_deal_the_numbers_out():
    above, below = [6, 7, 8, 9, 10], [1, 2, 3, 4, 5]
    assert luck(above, below) == pytest.approx(1 / 252) and luck(below, above) == 1
    assert luck([5, 7, 8, 9, 10], [1, 2, 3, 4, 6]) == pytest.approx(2 / 252)
    assert luck([1, 1], [1, 1]) == 1


def test_of_many_ways_luck_takes_a_sample():
    even, odd = np.arange(0, 40, 2), np.arange(1, 40, 2)
    assert luck(even + 30, odd) == 0 and luck(odd, even + 30) == 1
    assert luck(odd, even) + luck(even, odd) == pytest.approx(1, abs=0.05)


def test_verdicts_say_what_the_seeds_can_tell():
    above = done((2, 0.9, 0.7), (2, 0.95, 0.6), (6, 0.8, 0.7))
    series = {"random": [ONE, ONE], "a": [above], "b": [ONE], "c": [done((2, 0.1, 0))]}
    head, base, *lines = verdicts(series).splitlines()
    assert "pairs won against random" in head and "70.0%" in base and "of" not in base
    held, test = ("2 of 2 (luck: 33%)", "1 of 2", "0 of 2"), ("0 of 2", "1 of 2", "0 of 2")
    for line, *won in zip(lines, held, test, strict=True):
        shown = re.split("  +", line)[-2:]
        assert all(a.startswith(b) for a, b in zip(shown, won, strict=True))
    assert "95.0% (95.0% to 95.0%)  60.0%" in lines[0]


@pytest.mark.parametrize("make", [search_race.searches, search_race.layer_searches])
def test_the_searches_of_a_race_keep_their_promises_and_one_budget(make):
    for name, search in make(0).items():
        assert promises(lambda name=name: make(1)[name])
        assert search.budget == make(0)["random"].budget
    assert make(0)["random"].ask() != make(1)["random"].ask()


def test_a_population_trains_each_member_as_long_as_others_train_one():
    search = search_race.searches(0)["population"]
    assert len(search.members) * search_race.EPOCHS == search.budget == search_race.BUDGET


def few(seed):
    """A search that is over soon."""
    return {"random": RandomSearch(search_race.SPACE.draw, 1, 2, seed)}


class Backwards:
    """A cluster of one: the last call is the first to be done."""

    targets = ()

    def __init__(self):
        self.view = self.client = self

    def load_balanced_view(self, targets):
        return self

    def apply_async(self, function, *arguments):
        return functools.partial(function, *arguments)

    def first(self, calls):
        call = list(calls)[-1]
        call.get = call
        return call


def test_a_race_is_what_each_search_finds_alone():
    found = search_race.race(Backwards(), few, (3, 4))
    for seed, got in zip((3, 4), found["random"], strict=True):
        alone = run(few(seed)["random"], Here(trainer()))
        assert [(a.trial, a.score) for a in got] == [(a.trial, a.score) for a in alone]


def test_held_out_images_were_not_trained_on():
    task = trainer(500, 437)
    assert len(task.data.train_images) + len(task.data.test_images) <= 1437
    assert np.array_equal(np.unique(task.data.train_labels), np.arange(10))
