"""Pipelines as planned: bytes to the byte, times near the virtual world's, what is held."""

import numpy as np
import pytest
from tests.bench.planner.examples import problem

from cnnlab.distributed import trial
from cnnlab.distributed.pipeline import Pipeline
from cnnlab.measure.planner import held
from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.pipelined import Pipelined
from cnnlab.ranks.virtual import Link, World

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero-bubble")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_bytes_and_seconds_are_those_of_the_virtual_world(schedule):
    of, link = problem("lenet5", 3, 32), "10us,1GB/s"
    pipe = Pipelined(of, schedule)
    np.testing.assert_array_equal(
        pipe.sent(), trial.sent(3, "pipeline", "lenet5", batch=32, schedule=schedule)
    )
    how = {"of": "lenet5", "batch": 32, "schedule": schedule}
    seconds = trial.virtual_seconds(3, link, "pipeline", **how)
    assert pipe.seconds(Machine(Link.parse(link))) == pytest.approx(seconds, rel=0.02)


@pytest.mark.parametrize(
    "grid, cut, batch",
    [((2, 2, 1), "features", 30), ((2, 1, 3), "pixels", 7), ((2, 2, 2), "features", 40)],
)
def test_a_grid_sends_and_takes_what_it_does_in_the_virtual_world(grid, cut, batch):
    n_ranks, link = int(np.prod(grid)), "10us,1GB/s"
    pipe = Pipelined(problem("lenet5", n_ranks, batch), grid=grid, cut=cut)
    how = {"batch": batch, "grid": grid, "cut": cut}
    np.testing.assert_array_equal(pipe.sent(), trial.sent(n_ranks, "hybrid", "lenet5", **how))
    seconds = trial.virtual_seconds(n_ranks, link, "hybrid", "lenet5", **how)
    assert pipe.seconds(Machine(Link.parse(link))) == pytest.approx(seconds, rel=0.02)


def test_a_grid_of_one_row_holds_what_the_pipeline_or_the_shares_do():
    of = problem("lenet5", 4, 32)
    assert Pipelined(of, grid=(1, 4, 1)).held() == Pipelined(of).held()
    for cut in ("features", "pixels"):
        assert Pipelined(of, grid=(1, 1, 4), cut=cut).held() == held.by_layers(of, cut)
        empty = Pipelined(problem("lenet5", 8, 0), grid=(2, 2, 2), cut=cut)
        its = trial.held(8, "hybrid", "lenet5", batch=8, grid=(2, 2, 2), cut=cut)
        assert empty.held() == max(sum(of.values()) for of in its) / 4


def test_one_forward_one_backward_holds_what_its_ranks_do():
    of = problem("lenet5", 2, 32)

    def most_held(comm, schedule):
        its = trial.Trial(comm, "pipeline", "lenet5", batch=32, schedule=schedule)
        assert isinstance(its.method, Pipeline)
        its.step()
        return its.method.pipe.most_held

    for schedule in ("gpipe", "1f1b"):
        pipe, counts = Pipelined(of, schedule), World(2).run(most_held, schedule)
        most = [
            4 * n * pipe.kept(rank) + 2 * pipe.parameters(rank) for rank, n in enumerate(counts)
        ]  # 4 images of a micro-batch
        assert pipe.held() == max(most)
