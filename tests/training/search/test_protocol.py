import pytest

from cnnlab.training.search import Generations, Here, Proposal, Search, run
from tests.training.search.examples import hill, searches


class Constant(Search):
    def propose(self):
        return Proposal({"a": 1.0, "b": 0.0}, 7)


def test_trials_are_numbered_until_the_budget_is_handed_out():
    search = Constant(20)
    trials = [search.ask() for _ in range(5)]
    assert [trial and trial.number for trial in trials] == [0, 1, 2, None, None]
    assert search.spent == 21
    assert len({trial.seed for trial in trials[:3]}) == 3


def test_a_budget_is_a_whole_number():
    with pytest.raises(ValueError, match="budget: expected a whole number of at least 1, got 0"):
        Constant(0)


def test_a_generation_waits_for_its_last():
    search = Generations(Constant(70), 4)
    first = [search.ask() for _ in range(5)]
    assert first[4] is None
    for trial in (first[2], first[0], first[3]):
        search.tell(trial, 0.5)
        assert search.ask() is None
    search.tell(first[1], 0.5)
    assert search.ask().number == 4


def test_generations_lose_no_trial():
    for search in searches().values():
        done = run(Generations(search, 6), Here(hill))
        assert sum(one.trial.epochs for one in done) >= search.budget
