from cnnlab.measure.challenge_search import challenge_search
from cnnlab.training.search import RandomSearch, Search
from tests.training.search.examples import SPACE, hill


def mine(seed):
    return RandomSearch(SPACE.draw, 2, 20, seed)


def test_no_answer_is_told():
    assert challenge_search(..., 0.9) is None


def test_a_search_is_compared_with_the_best(capsys):
    found = challenge_search(mine, -0.5, budget=20, seeds=(1, 2, 3), evaluate=hill)
    expected = []
    for seed in (1, 2, 3):
        search = mine(seed)
        expected.append(max(hill(trial, None).score for trial in iter(search.ask, None)))
    assert found == sorted(expected)[1]
    assert f"yours is {100 * (found + 0.5):+.1f} points" in capsys.readouterr().out


def test_another_budget_and_a_broken_promise_are_refused(capsys):
    assert challenge_search(mine, 0.9, budget=10, evaluate=hill) is None
    assert "budget: expected 10 epochs, got 20" in capsys.readouterr().out

    class Nothing(Search):
        def propose(self):
            return None

    assert challenge_search(lambda seed: Nothing(20, seed), 0.9, budget=20) is None
    assert "it ended after 0 of 20 epochs" in capsys.readouterr().out
