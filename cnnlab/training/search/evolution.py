"""Regularised evolution (Real, Aggarwal, Huang and Le, *Regularized Evolution for Image Classifier
Architecture Search*, 2019)."""

from collections import deque
from collections.abc import Callable

import numpy as np

from cnnlab.runtime.arguments import at_least
from cnnlab.training.search.protocol import Config, Draw, Proposal, Search, Trial


class Evolution(Search):
    """The best of a few, drawn from the population, has a child; the oldest member dies.

    `draw` makes the first `size` members, `mutate` a child. Age kills and not the score: a network
    that was lucky once has to be lucky again, in its children.
    """

    def __init__(
        self, draw: Draw, mutate: Callable[[Config, np.random.Generator], Config], epochs: int,
        budget: int, seed: int = 0, *, size: int = 10, sample: int = 3,
    ):  # fmt: skip
        super().__init__(budget, seed)
        at_least("size", size, 1)
        at_least("sample", sample, 1)
        self.draw, self.mutate, self.epochs = draw, mutate, epochs
        self.size, self.sample = size, sample
        self.population: deque[tuple[float, Config]] = deque(maxlen=size)  # the oldest first

    def propose(self) -> Proposal:
        """One of the first, or the child of the best of a sample of those told."""
        if self.asked < self.size or not self.population:
            return Proposal(self.draw(self.rng), self.epochs)
        few = min(self.sample, len(self.population))
        drawn = self.rng.choice(len(self.population), few, replace=False)
        _, parent = max((self.population[k] for k in drawn), key=lambda member: member[0])
        return Proposal(self.mutate(parent, self.rng), self.epochs)

    def tell(self, trial: Trial, score: float) -> None:
        """The trial joins the population; beyond its size the oldest falls out."""
        self.population.append((score, trial.config))
