"""What all searches have in common: ask one for a trial, tell it the score, in any order."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cnnlab.runtime.arguments import at_least

Config = dict  # plain data, for JSON: what a trial is trained with
Draw = Callable[[np.random.Generator], Config]


class Trial(NamedTuple):
    """A training to be done: so many epochs with this configuration.

    It goes on from the state that trial number `parent` left; without one it begins anew, from
    its seed. The seed and the parent's state fix all that comes of it.
    """

    number: int
    config: Config
    epochs: int
    parent: int | None
    seed: int


class Proposal(NamedTuple):
    """What a method proposes; `Search.ask` makes a trial of it."""

    config: Config
    epochs: int
    parent: int | None = None


class Search:
    """Propose trials, and be told their scores: the base of every method.

    A method overrides `propose` and `tell`. Trials may be handed out before earlier ones are told,
    and told in any order. What is asked follows from the seed, and from the asks and tells before,
    so that a search is what its journal says. No more trials come once `budget` epochs are handed
    out. `keeps` says that a trial may go on from another one's state.
    """

    keeps = False

    def __init__(self, budget: int, seed: int = 0):
        at_least("budget", budget, 1)
        self.budget, self.spent, self.asked = budget, 0, 0
        self.rng = np.random.default_rng(seed)

    def ask(self) -> Trial | None:
        """The next trial; None if there is none before more are told, or at all.

        An ask that returns None changes nothing.
        """
        proposal = self.propose() if self.spent < self.budget else None
        if proposal is None:
            return None
        trial = Trial(self.asked, *proposal, int(self.rng.integers(2**31)))
        self.spent, self.asked = self.spent + trial.epochs, self.asked + 1
        return trial

    def propose(self) -> Proposal | None:
        """The next configuration, how long to train it, and from where on; None: wait."""
        raise NotImplementedError

    def tell(self, trial: Trial, score: float) -> None:
        """Take in the score of a trial, the more the better: an accuracy on held-out images."""


class Generations:
    """A search whose trials come in generations: none of the next before all of one are told."""

    def __init__(self, search: Search, size: int):
        at_least("size", size, 1)
        self.search, self.size, self.keeps = search, size, search.keeps
        self.handed = self.told = 0

    def ask(self) -> Trial | None:
        """The next trial of this generation; None while its last ones are trained."""
        if self.told < self.handed and self.handed % self.size == 0:
            return None
        trial = self.search.ask()
        self.handed += trial is not None
        return trial

    def tell(self, trial: Trial, score: float) -> None:
        """Take in the score of a trial."""
        self.told += 1
        self.search.tell(trial, score)
