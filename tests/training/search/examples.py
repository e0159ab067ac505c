"""Searches and evaluations that tests share."""

import numpy as np

from cnnlab.training.search import (
    Evolution,
    Halving,
    PopulationBased,
    RandomSearch,
    Range,
    Result,
    Space,
    Swarm,
)

SPACE = Space(a=Range(0.01, 100), b=Range(-1, 1, log=False))
PLAN = {"epochs": 9, "budget": 180}


def searches(seed=0):
    """One of each method, by name."""
    plan = PLAN | {"seed": seed}
    return {
        "random": RandomSearch(SPACE.draw, **plan),
        "halving": Halving(SPACE.draw, **plan),
        "swarm": Swarm(SPACE, **plan),
        "population": PopulationBased(SPACE.draw, SPACE.perturb, **plan | {"epochs": 3, "size": 6}),
        "evolution": Evolution(SPACE.draw, SPACE.perturb, **plan, size=6),
    }


def hill(trial, state):
    """The nearer a to 1 and b to 0, and the longer the training, the better; exact, and quick."""
    done = trial.epochs + (0 if state is None else float(state["done"]))
    far = np.log(trial.config["a"]) ** 2 + trial.config["b"] ** 2
    return Result(float(-far / done), {"done": np.array(done)}, {"test": float(far)})
