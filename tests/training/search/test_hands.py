import json
import os
import signal
import time

import pytest

from cnnlab.ranks.cluster import RankError, cluster
from cnnlab.ranks.virtual import Link, World, examine
from cnnlab.training.search import Engines, Here, run, search_on
from tests.ranks import programs
from tests.training.search.examples import hill, searches

NAMES = list(searches())


def program(comm, name, seconds=0.01):
    def charged(trial, state):
        comm.compute(seconds * trial.epochs)
        return hill(trial, state)

    return search_on(comm, searches()[name] if comm.rank == 0 else None, charged)


def consistent(done, name):
    """Every trial once, the budget spent, each scored as its chain of parents makes it."""
    by_number = {one.trial.number: one for one in done}
    assert sorted(by_number) == list(range(len(done)))
    assert sum(one.trial.epochs for one in done) >= searches()[name].budget
    for one in done:
        epochs, at = 0, one.trial
        while at is not None:
            epochs, at = epochs + at.epochs, at.parent
            at = by_number[at].trial if at is not None else None
        if name != "population":
            assert one.score == -one.report["test"] / epochs
    return True


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [2, 3, 9])
def test_virtual_ranks_train_every_trial_once(name, n):
    done = World(n, Link(1e-5, 1e9), jitter=0.5).run(program, name)
    assert consistent(done[0], name) and done[1:] == [None] * (n - 1)
    assert {one.report["rank"] for one in done[0]} == set(range(1, n))


def test_one_worker_finds_what_this_process_finds():
    expected = run(searches()["population"], Here(hill))
    done = World(2).run(program, "population")[0]
    assert [(one.trial, one.score) for one in done] == [(one.trial, one.score) for one in expected]


def test_a_slow_rank_gets_fewer_trials_and_holds_up_nobody():
    world = World(5, Link(1e-5, 1e9), speed={4: 10})
    done = world.run(program, "random")[0]
    ranks = [one.report["rank"] for one in done]
    assert ranks.count(4) <= 2 < ranks.count(1)
    busy = world.record.seconds("compute")[1:4] / world.seconds
    assert world.seconds <= 2 * 0.9 + 0.1 and busy.min() > 0.4


def test_the_master_and_one_more_are_needed():
    with pytest.raises(ValueError, match=r"ranks: expected at least 2, .* got 1"):
        World(1).run(program, "random")


def test_results_that_race_are_the_only_fault_of_it():
    found = examine(lambda comm: program(comm, "random"), 3)
    assert {fault.kind for fault in found} <= {"message race"}


@pytest.mark.mpi
def test_real_ranks_train_every_trial_once():
    out, _ = programs.run(3, "-m", "tests.training.search.ranked")
    told = json.loads(out)
    expected = {one.trial.number: one.score for one in run(searches()["random"], Here(hill))}
    assert sorted(number for number, _, _ in told) == list(range(len(told)))
    assert {rank for _, _, rank in told} == {1, 2} and len(told) > len(expected)


def failing(trial, state):
    raise RuntimeError("out of luck")


def dying(trial, state):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.mpi
def test_engines_train_every_trial_once_and_tell_of_an_error_and_of_a_death():
    with cluster(2) as ranks:
        for name in ("halving", "population"):
            done = run(searches()[name], Engines(ranks, hill))
            assert consistent(done, name)
            assert {one.report["rank"] for one in done} == {0, 1}
        with pytest.raises(RankError, match="raised RuntimeError: out of luck"):
            run(searches()["random"], Engines(ranks, failing))
        start = time.monotonic()
        with pytest.raises(RankError, match="a rank died without a traceback"):
            run(searches()["random"], Engines(ranks, dying))
        assert time.monotonic() - start < 10
