"""Particle swarms (Kennedy and Eberhart, *Particle Swarm Optimization*, 1995)."""

import math
from dataclasses import dataclass, field

import numpy as np

from cnnlab.runtime.arguments import at_least
from cnnlab.training.search.protocol import Proposal, Search, Trial
from cnnlab.training.search.space import Space


@dataclass
class Particle:
    """Where a particle is and how it moves, in the unit cube, and the best place it has been."""

    place: np.ndarray
    velocity: np.ndarray
    moves: int = 0
    busy: bool = False
    best: float = -math.inf
    best_place: np.ndarray = field(init=False)

    def __post_init__(self):
        self.best_place = self.place.copy()


class Swarm(Search):
    """Particles that fly on, drawn to the best place of their own and to the best of all.

    A particle moves when somebody asks and it is free, by what is known then: none waits for the
    others. `inertia` (Shi and Eberhart 1998) and `pull` are those of Clerc and Kennedy (2002), with
    which a swarm contracts.
    """

    inertia, pull = 0.7298, 1.49618

    def __init__(self, space: Space, epochs: int, budget: int, seed: int = 0, *, size: int = 6):
        super().__init__(budget, seed)
        at_least("size", size, 1)
        self.space, self.epochs, self.flies = space, epochs, {}
        places = self.rng.random((size, len(space)))
        speeds = self.rng.uniform(-0.25, 0.25, (size, len(space)))
        self.particles = [Particle(*both) for both in zip(places, speeds, strict=True)]

    def propose(self) -> Proposal | None:
        """Move the free particle that has moved least; None while all are being trained."""
        free = [one for one in self.particles if not one.busy]
        if not free:
            return None
        one = min(free, key=lambda particle: particle.moves)
        if one.moves:
            leader = max(self.particles, key=lambda particle: particle.best)
            own, common = self.rng.random((2, len(self.space)))
            one.velocity *= self.inertia
            one.velocity += self.pull * own * (one.best_place - one.place)
            one.velocity += self.pull * common * (leader.best_place - one.place)
            there = one.place + one.velocity
            one.place = there.clip(0, 1)
            one.velocity[there != one.place] = 0  # at a wall it stops
        one.moves, one.busy = one.moves + 1, True
        self.flies[self.asked] = one
        return Proposal(self.space.at(one.place), self.epochs)

    def tell(self, trial: Trial, score: float) -> None:
        """The particle is free again, and remembers the place if it is its best."""
        one = self.flies.pop(trial.number)
        one.busy = False
        if score > one.best:
            one.best, one.best_place = score, one.place.copy()
