"""Population based training (Jaderberg and others, *Population Based Training of Neural Networks*,
2017)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cnnlab.runtime.arguments import at_least
from cnnlab.training.search.protocol import Config, Draw, Proposal, Search, Trial

Exploit = Callable[[Sequence[float], int, np.random.Generator], int]


@dataclass
class Member:
    """One of the population: its configuration, and the latest trial of its training."""

    config: Config
    trial: int | None = None
    score: float = -math.inf
    turns: int = 0
    busy: bool = False


def truncation(scores: Sequence[float], me: int, rng: np.random.Generator) -> int:
    """Whom to copy: one of the worst fifth copies one of the best fifth; the others themselves.

    `scores` are the latest of all members, of which there are at least two for somebody to copy.
    """
    order = np.argsort(scores, kind="stable")
    few = max(1, len(scores) // 5) if len(scores) > 1 else 0
    return int(rng.choice(order[-few:])) if me in order[:few] else me


class PopulationBased(Search):
    """Train a population side by side; after each turn the worst copy the best, and vary them.

    A turn is `epochs` long. `exploit` chooses whom to copy: parameters and the optimiser's state
    come from that member's latest trial, the configuration as well, and `explore` varies it. A
    member's hyperparameters thus change while it is trained. It waits for nobody: the latest scores
    that were told are compared, and a member that has copied keeps its old one until it is told.
    """

    keeps = True

    def __init__(
        self, draw: Draw, explore: Callable[[Config, np.random.Generator], Config], epochs: int,
        budget: int, seed: int = 0, *, size: int = 10, exploit: Exploit = truncation,
    ):  # fmt: skip
        super().__init__(budget, seed)
        at_least("size", size, 1)
        self.explore, self.exploit, self.epochs = explore, exploit, epochs
        self.members = [Member(draw(self.rng)) for _ in range(size)]
        self.at: dict[int, Member] = {}

    def propose(self) -> Proposal | None:
        """The next turn of the free member that has had fewest; None while all are trained."""
        free = [k for k, one in enumerate(self.members) if not one.busy]
        if not free:
            return None
        me = min(free, key=lambda k: self.members[k].turns)
        one = self.members[me]
        if one.turns:
            better = self.members[self.exploit([m.score for m in self.members], me, self.rng)]
            self.turn(one, better)
        one.turns, one.busy = one.turns + 1, True
        self.at[self.asked] = one
        return Proposal(one.config, self.epochs, one.trial)

    def turn(self, one: Member, better: Member) -> None:
        """Between two turns: copy the better member and vary the copy, unless it is itself."""
        if better is not one:
            one.trial = better.trial
            one.config = self.explore(better.config, self.rng)

    def tell(self, trial: Trial, score: float) -> None:
        """The member's latest trial is this one."""
        one = self.at.pop(trial.number)
        one.busy, one.trial, one.score = False, trial.number, score
