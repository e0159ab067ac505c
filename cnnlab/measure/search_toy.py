"""The toy problem of population based training (Jaderberg and others 2017, figure 2).

Maximise Q(θ) = 1.2 − θ₀² − θ₁², when only a surrogate can be differentiated, 1.2 − h₀θ₀² − h₁θ₁²,
with hyperparameters h. Two members begin at the same θ, one with h = (1, 0), one with h = (0, 1):
neither sees the whole.
"""

from itertools import cycle

import numpy as np

from cnnlab.training.search import Done, Here, PopulationBased, Result, Trial, run

START, RATE, BEST = (0.9, 0.9), 0.01, 1.2
TURN, TURNS = 4, 50  # steps of a turn, turns of a member
STRAY = 0.1  # by how much exploring changes h, as a standard deviation


def ascend(trial: Trial, state: dict | None) -> Result:
    """Climb the surrogate for a step an epoch; the score is Q itself, and θ is reported."""
    theta = np.array(START) if state is None else state["theta"].copy()
    h = np.array([trial.config["h0"], trial.config["h1"]])
    for _ in range(trial.epochs):
        theta -= RATE * 2 * h * theta
    return Result(BEST - float(theta @ theta), {"theta": theta}, {"theta": theta.tolist()})


def stray(h: dict, rng: np.random.Generator) -> dict:
    """Each hyperparameter a little more or less, between 0 and 1."""
    return {name: float(np.clip(x + rng.normal(0, STRAY), 0, 1)) for name, x in h.items()}


def stay(h: dict, rng: np.random.Generator) -> dict:
    """The same hyperparameters."""
    return h


class Both(PopulationBased):
    """Exploit and explore: the worse of the two copies the better and varies the copy."""

    vary = staticmethod(stray)

    def __init__(self, seed: int = 0):
        first = cycle([{"h0": 1.0, "h1": 0.0}, {"h0": 0.0, "h1": 1.0}])
        budget = 2 * TURN * TURNS
        super().__init__(lambda rng: next(first), self.vary, TURN, budget, seed, size=2)


class Neither(Both):
    """Each goes its own way: a grid search over two configurations."""

    def turn(self, one, better) -> None:
        """Copy nothing, vary nothing."""


class ExploreAlone(Both):
    """Each varies its own hyperparameters after every turn."""

    def turn(self, one, better) -> None:
        """Vary what one has."""
        one.config = self.explore(one.config, self.rng)


class ExploitAlone(Both):
    """The worse copies the better, hyperparameters and all."""

    vary = staticmethod(stay)


class CopyWeights(Both):
    """The worse copies only θ, and keeps its own hyperparameters."""

    def turn(self, one, better) -> None:
        """Go on from the better one's latest trial."""
        one.trial = better.trial


VARIANTS = {
    "neither": Neither,
    "explore alone": ExploreAlone,
    "exploit alone": ExploitAlone,
    "exploit weights": CopyWeights,
    "both": Both,
}


def toy(seed: int = 0) -> dict[str, list[Done]]:
    """What each variant was told, trial by trial."""
    return {name: run(make(seed), Here(ascend)) for name, make in VARIANTS.items()}


def tracks(done: list[Done]) -> np.ndarray:
    """θ of both members after each turn, with the start: (2, TURNS + 1, 2)."""
    at = [[START], [START]]
    for one in done:
        at[one.trial.number % 2].append(one.report["theta"])
    return np.array(at)
