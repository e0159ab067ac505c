"""Trainings under a virtual server: the same each time, and faster where nobody waits."""

import math

import pytest

from cnnlab.data import load
from cnnlab.distributed.ledger import Ledger
from cnnlab.measure import server_runs
from cnnlab.measure.server_runs import Look, Run, Watched, learn, throughput
from cnnlab.ranks.virtual import World

DIGITS = load("digits", 200, 50)
PACE = {"jitter": 0.4, "slow": 1, "seed": 3}


def test_a_run_is_the_same_each_time_and_without_faults():
    first, again = (learn(DIGITS, 3, "any", epochs=2, **PACE) for _ in range(2))
    assert first.looks == again.looks and first.ledger.faults(math.inf) == []
    assert first.looks[-1].images == 400 and len(first.looks) == server_runs.LOOKS
    assert first.throughput == again.throughput > 0


def test_without_staleness_any_number_of_workers_learns_the_same_at_the_same_batch():
    one = learn(DIGITS, 1, 0, images=8, rate=0.4)
    four = learn(DIGITS, 4, 0, images=2, rate=0.1)
    assert one.looks[-1].loss == pytest.approx(four.looks[-1].loss, rel=1e-3)
    assert four.staleness == 0


def test_losses_between_looks():
    run = Run([Look(1, 1.0, 3.0), Look(2, 2.0, 1.0)], Ledger(1, 1), 1.0)
    assert run.loss_at(1.5) == 2.0


def test_nobody_waits_for_a_straggler_where_staleness_is_any():
    slow = {"slow": 1, "n_each": 8}
    assert throughput(4, "any", **slow) > 2 * throughput(4, 0, **slow)


def test_the_roof_is_where_many_workers_come_to():
    found = throughput(64, "any", images=8, n_each=8)
    assert 0.8 < found / server_runs.roof(8) < 1.02


def test_shards_let_ranks_reach_in_at_once_where_parameters_are_many():
    few, many = (
        [server_runs.one_sided_throughput(8, n_shards, n) for n_shards in (1, 4)]
        for n in (100, 100_000)
    )
    assert many[1] > 2 * many[0] and few[1] < 1.3 * few[0]


@pytest.mark.parametrize("n_workers, staleness", [(1, 0), (3, 0), (3, "any")])
def test_the_largest_rate_is_the_predicted_one(n_workers, staleness):
    near = 2 / n_workers if staleness == 0 else server_runs.bound(n_workers - 1)
    assert server_runs.largest_rate(n_workers, staleness, near) == pytest.approx(near, rel=0.01)


def test_ranks_train_without_faults():
    (wrong, losses), *_ = World(3).run(server_runs.on_ranks, 1, 20)
    assert wrong == [] and losses[-1] < 0.9 * losses[0]


def test_a_challenge_is_told_how_it_went(capsys):
    how = {"n_workers": 2, "rate": 0.4}
    assert server_runs.challenge_server(lambda: None, DIGITS, 1.0, 1.0, **how) is None
    assert server_runs.challenge_server(lambda: Watched, DIGITS, 1.0, 0.1, **how) is None
    took = server_runs.challenge_server(lambda: Watched, DIGITS, 1.0, 3.4, **how)
    said = capsys.readouterr().out
    assert 0 < took < 1 and "not yet answered" in said and "✗ the loss came" in said
    assert "virtual ms: faster than 1000.0" in said
