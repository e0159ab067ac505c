"""The searches of lesson 58, run as they stand in its cells."""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from cnnlab.lessons import lesson_58 as lesson
from tests.lessons import breaking


@pytest.fixture(scope="module")
def page():
    """The names that the lesson's imports and its cells of matter define."""
    return breaking.defined("58", "from cnnlab import", __name__="page")


def searches(page) -> dict:
    """Each search of the lesson as a function of `run` and a generator, with 18 epochs at most."""
    draw, at, explore, turn = (page[n] for n in ("draw", "at", "explore", "copy_and_vary"))
    return {
        "random_search": lambda run, rng: page["random_search"](run, draw, 18, rng),
        "halving": lambda run, rng: page["halving"](run, draw, rng),
        "population": lambda run, rng: page["population"](run, draw, turn, 3, rng),
        "swarm": lambda run, rng: page["swarm"](run, at, 3, 18, rng),
        "evolution": lambda run, rng: page["evolution"](run, draw, explore, 18, rng),
    }


NAMES = "random_search", "halving", "population", "swarm", "evolution"


def runs(page, evaluate, budget: int, n_workers: int, **options):
    """`run` with workers in virtual time, and their pool."""
    pool = page["VirtualPool"](n_workers, lambda config, epochs: epochs / config["batch"])
    how = {"evaluate": evaluate, "budget": budget, "pool": pool, "n_workers": n_workers}
    return partial(page["in_parallel"], **how, wait=pool.wait, **options), pool


@pytest.mark.parametrize("name", NAMES[1:])
@pytest.mark.parametrize("n_workers", [1, 5])
def test_a_search_beats_as_many_random_trials(page, name, n_workers):
    leads = []
    for seed in range(12):
        best = {}
        for which in (name, "random_search"):
            run, _ = runs(page, page["hill"], 1440, n_workers)
            results = searches(page)[which](run, np.random.default_rng(seed))
            best[which] = max(result.score for result in results.values())
        leads.append(best[name] - best["random_search"])
    assert np.mean(leads) > 0.05


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("generations", [False, True])
def test_failures_cost_no_other_trial_and_the_budget_is_spent(page, name, generations, capsys):
    def fragile(config, epochs, seed, state):
        if config["batch"] > 30:
            raise MemoryError("too large")
        return page["hill"](config, epochs, seed, state)

    run, pool = runs(page, fragile, 360, 4, generations=generations)
    results = searches(page)[name](run, np.random.default_rng(3))
    failed = [result.score == -math.inf for result in results.values()]
    assert failed == [trial.config["batch"] > 30 for trial in results] and 0 < sum(failed)
    assert capsys.readouterr().out.count("too large") == sum(failed) < len(failed)
    spent = sum(trial.epochs for trial in results)
    assert 360 <= spent < 360 + max(trial.epochs for trial in results)
    assert len(pool.spans) == len(results) and len(pool.idle) == 4


def test_who_evaluates_changes_no_score(page):
    pool = ThreadPoolExecutor(3)
    how = {"evaluate": page["hill"], "budget": 180, "pool": pool, "n_workers": 3}
    outcome = []
    for run in (
        partial(page["in_parallel"], **how),
        *(runs(page, page["hill"], 180, n)[0] for n in (1, 4)),
    ):
        results = searches(page)["random_search"](run, np.random.default_rng(0))
        outcome.append({trial.seed: result.score for trial, result in results.items()})
    assert outcome[0] == outcome[1] == outcome[2] and len(outcome[0]) == 10


def test_a_generation_begins_when_the_last_one_has_ended(page):
    run, pool = runs(page, page["hill"], 18 * 12, 4, generations=True)
    searches(page)["random_search"](run, np.random.default_rng(0))
    begins = sorted({begin for _, begin, _ in pool.spans})
    for begin in begins[1:]:
        assert begin == max(end for _, b, end in pool.spans if b < begin)
    assert len(begins) == 3


@pytest.mark.parametrize("name, epochs", [("halving", {2, 6, 18}), ("population", {3, 6, 9, 12})])
def test_trials_go_on_from_a_state(page, name, epochs):
    run, _ = runs(page, page["hill"], 8 * 12, 3)
    results = searches(page)[name](run, np.random.default_rng(1))
    assert {result.state for result in results.values()} <= epochs
    assert max(result.state for result in results.values()) == max(epochs)


def test_a_training_goes_on_where_it_stopped():
    config = {"rate": 0.1, "friction": 0.1, "batch": 16}
    first, same = (lesson.evaluate(config, 1, seed=5) for _ in range(2))
    still = lesson.evaluate(config, 0, seed=6, state=first.state)
    assert first.score == same.score == still.score and first.test == still.test
    assert all(np.array_equal(still.state[key], first.state[key]) for key in first.state)
    assert lesson.evaluate(config, 3, seed=6, state=first.state).score > first.score
