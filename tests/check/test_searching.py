import pytest

from cnnlab.check.searching import promises
from cnnlab.training.search import Generations, Proposal, RandomSearch, Search
from tests.training.search.examples import SPACE, searches


@pytest.mark.parametrize("name", list(searches()))
def test_every_method_keeps_its_promises(name):
    found = promises(lambda: searches(3)[name])
    assert found, found.text


class Restless(RandomSearch):
    """One whose asks in vain change what comes later."""

    def __init__(self, *args):
        super().__init__(*args)
        self.out = 0

    def propose(self):
        config = self.draw(self.rng)
        if self.out == 3:
            return None
        self.out += 1
        return Proposal(config, self.epochs)

    def tell(self, trial, score):
        self.out -= 1


class Extravagant(RandomSearch):
    def ask(self):
        self.budget, budget = 10**9, self.budget
        trial, self.budget = super().ask(), budget
        return trial if trial.number < 50 else None


class Forward(Search):
    def propose(self):
        return Proposal({"a": 1.0}, 3, self.asked - 1 if self.asked else None)


class Forgetful(RandomSearch):
    seeds = iter(range(1000))

    def __init__(self, *args):
        super().__init__(*args, seed=next(self.seeds))


class Lazy(RandomSearch):
    def propose(self):
        return super().propose() if self.asked < 3 else None


@pytest.mark.parametrize(
    "make, word",
    [
        (lambda: Restless(SPACE.draw, 9, 180), "an ask that returned None changed"),
        (lambda: Extravagant(SPACE.draw, 9, 180), "180 epochs of 180 were handed out, and then"),
        (lambda: Forward(180), "trial 1 goes on from 0, which was not told"),
        (lambda: Forgetful(SPACE.draw, 9, 180), "brought other trials"),
        (lambda: Lazy(SPACE.draw, 9, 180), "ended after 27 of 180 epochs"),
    ],
)
def test_a_broken_promise_is_named(make, word):
    found = promises(make)
    assert not found and word in found.text, found.text


def test_it_speaks_of_generations_too():
    class Four(Generations):
        budget = 180

        def __init__(self):
            super().__init__(searches()["random"], 4)

    assert promises(Four)
