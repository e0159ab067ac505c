"""A race of searches on the digits: the same space, the same budget of epochs, several seeds."""

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from cnnlab import data
from cnnlab.lessons.lesson_53 import held_out
from cnnlab.runtime import arguments
from cnnlab.training.search import (
    Done,
    Evolution,
    Halving,
    Here,
    Layers,
    PopulationBased,
    RandomSearch,
    Range,
    Space,
    Swarm,
    Trainer,
    run,
)

SPACE = Space(rate=Range(0.003, 1), friction=Range(0.03, 1), batch=Range(8, 64, whole=True))
EPOCHS, BUDGET = 18, 144  # of the longest training; of a search
N_TRAIN, N_HELD = 400, 437  # images to train on, and to score on
NETWORKS = Layers({"rate": 0.05, "friction": 0.1, "batch": 16})
SHORT, FEW = 4, 100  # as above, for searches of layers
DEALS = 10_000


def searches(seed: int) -> dict:
    """The methods that search SPACE, with the same budget."""
    plan = {"epochs": EPOCHS, "budget": BUDGET, "seed": seed}
    turns = plan | {"epochs": 3, "size": 8}
    return {
        "random": RandomSearch(SPACE.draw, **plan),
        "halving": Halving(SPACE.draw, **plan, first=2),
        "swarm": Swarm(SPACE, **plan, size=4),
        "population": PopulationBased(SPACE.draw, SPACE.perturb, **turns),
    }


def layer_searches(seed: int) -> dict:
    """The methods that search networks of a few layers."""
    plan = {"epochs": SHORT, "budget": FEW, "seed": seed}
    return {
        "random": RandomSearch(NETWORKS.draw, **plan),
        "evolution": Evolution(NETWORKS.draw, NETWORKS.mutate, **plan, size=8, sample=3),
    }


class Leader(NamedTuple):
    """The best trial by its score, once so many epochs have been trained."""

    epochs: int
    score: float
    test: float
    trial: int


def leaders(done: Sequence[Done]) -> list[Leader]:
    """Who led after each trial told: the curve of a search, over the epochs spent."""
    found, spent = [], 0
    for one in done:
        spent += one.trial.epochs
        if not found or one.score > found[-1].score:
            found.append(Leader(spent, one.score, one.report["test"], one.trial.number))
        else:
            found.append(found[-1]._replace(epochs=spent))
    return found


@functools.cache
def trainer(n_train: int = N_TRAIN, n_held: int = N_HELD) -> Trainer:
    """What trains on the first of the digits, scores on the last ones, and reports on the test."""
    digits = data.load("digits")
    return Trainer(held_out(digits, n_train, n_held), digits.test_images, digits.test_labels)


def one_search(make: Callable[[int], Mapping], name: str, seed: int) -> list[Done]:
    """A whole search in this process, on one core."""
    return run(make(seed)[name], Here(trainer()))


def race(cluster, make: Callable[[int], Mapping], seeds: Sequence[int]) -> dict[str, list]:
    """Each method with each seed, a whole search each, on the engines of a cluster.

    By method, what `run` returned for each seed.
    """
    view = cluster.view.client.load_balanced_view(cluster.view.targets)
    found = {name: [[] for _ in seeds] for name in make(0)}
    calls = {
        view.apply_async(one_search, make, name, seed): (name, k)
        for name in found
        for k, seed in enumerate(seeds)
    }
    while calls:
        call = cluster.first(calls)
        name, k = calls.pop(call)
        found[name][k] = call.get()
    return found


def wins(a: Sequence[float], b: Sequence[float]) -> float:
    """How many of all pairs, one of `a` and one of `b`, `a` wins; a tie counts half."""
    by = np.subtract.outer(a, b)
    return float((by > 0).sum() + (by == 0).sum() / 2)


def luck(a: Sequence[float], b: Sequence[float]) -> float:
    """How likely `a` wins as many pairs, or more, if it differs from `b` by luck alone.

    The share of all ways to deal the numbers out to the two, or of a sample of `DEALS` where there
    are more (H. B. Mann and D. R. Whitney, “On a test of whether one of two random variables is
    stochastically larger than the other”, 1947).
    """
    both, won, n = np.array([*a, *b]), wins(a, b), len(a)
    if comb(len(both), n) <= DEALS:
        deals = [list(mine) for mine in combinations(range(len(both)), n)]
    else:
        rng = np.random.default_rng(0)
        deals = [rng.permutation(len(both))[:n] for _ in range(DEALS)]
    return float(np.mean([wins(both[mine], np.delete(both, mine)) >= won for mine in deals]))


def verdicts(series: Mapping[str, Sequence[Sequence[Done]]], base: str = "random") -> str:
    """A table: the winners of each method's seeds, and the pairs won against those of `base`.

    Beside the pairs stands how likely luck alone wins as many.
    """
    last = {name: [leaders(done)[-1] for done in runs] for name, runs in series.items()}
    rows = [("", "held out", "test", f"pairs won against {base}", "on the test")]
    for name, of in last.items():
        ranges, pairs = [], []
        for kind in ("score", "test"):
            mine, its = ([getattr(one, kind) for one in each] for each in (of, last[base]))
            ranges.append(f"{np.median(mine):.1%} ({min(mine):.1%} to {max(mine):.1%})")
            n, share = len(mine) * len(its), luck(mine, its)
            pairs.append(f"{wins(mine, its):g} of {n} (luck: {share:.0%})" if name != base else "")
        rows.append((name, *ranges, *pairs))
    return arguments.table(rows)


def bands(runs: Sequence[Sequence[Done]], n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Epochs (n,), and the scores that led by then (runs, n); 0 before the first was told."""
    curves = [leaders(done) for done in runs]
    epochs = np.linspace(0, min(curve[-1].epochs for curve in curves), n)
    scores = np.zeros((len(curves), n))
    for row, curve in zip(scores, curves, strict=True):
        at = np.searchsorted([leader.epochs for leader in curve], epochs, side="right") - 1
        row[:] = [curve[k].score if k >= 0 else 0 for k in at]
    return epochs, scores
