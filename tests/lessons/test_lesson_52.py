"""The cuts and schedules in the cells of lesson 52 are the package's; it draws what it says."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab.distributed import trial
from cnnlab.kernels import composition
from cnnlab.lessons import lesson_52 as lesson
from cnnlab.network import EIGHT, LENET5
from cnnlab.ranks.pipeline import plan, timed
from tests.lessons import breaking

PAGE = {"np": np, "lesson": lesson, "composition": composition, "itertools": itertools}
PAGE |= {"trial": trial, "EIGHT": EIGHT, "LENET5": LENET5, "N": 60}
PAGE = breaking.defined("52", **PAGE)
plt.close("all")  # that picture stands below a definition


@pytest.mark.parametrize("mine, name", [("gpipe", "gpipe"), ("one_f_one_b", "1f1b")])
@pytest.mark.parametrize("size, m", [(1, 3), (4, 8), (5, 2)])
def test_schedules_and_their_times_are_the_packages(mine, name, size, m):
    group = plan(name, size, m)
    assert [PAGE[mine](rank, size, m) for rank in range(size)] == [
        [(task.kind, task.micro) for task in tasks] for tasks in group
    ]
    seconds = {"F": 1.5, "B": 2.0}
    spans = PAGE["play"](PAGE[mine], size, m, lambda rank, kind: seconds[kind])
    assert spans == {
        (span.rank, span.task.kind, span.task.micro): (span.begin, span.end)
        for span in timed(group, seconds)
    }

    with pytest.raises(ValueError, match="deadlock"):
        PAGE["play"](lambda rank, size, m: [("B", 0), ("F", 0)], size, m, lambda *task: 1)


def step_of_package(way, network, n_ranks=2, **options):
    """Images, labels, and gradients of the whole network that a step of the package has gone."""

    def program(comm):
        one = trial.Trial(comm, way, network, batch=60, **options)
        replica, before = one.replica, one.replica.params.flat.copy()
        one.step()
        one.method.gather(replica)
        return replica.images, replica.labels, (before - replica.params.flat) * 60 / 0.1

    return trial.Counting(n_ranks).run(program)[0]


def test_a_pipeline_and_a_cut_within_layers_take_the_packages_step():
    x, labels, expected = step_of_package("pipeline", "eight")

    def pipeline(comm):
        stage = PAGE["layers"](EIGHT)[slice(5) if comm.rank == 0 else slice(5, None)]
        tasks = PAGE["one_f_one_b"](comm.rank, 2, 6)
        micro = [(x[k : k + 10], labels[k : k + 10]) for k in range(0, 60, 10)]
        PAGE["pipeline"](comm, stage, tasks, micro)
        return np.concatenate([layer.grads for layer in stage])

    assert np.allclose(np.concatenate(trial.Counting(2).run(pipeline)), expected, atol=5e-3)
    PAGE["x"], PAGE["labels"], expected = step_of_package("model", "lenet5")
    (_, first), (_, second) = trial.Counting(2).run(PAGE["step"], "tensor")
    w = np.concatenate([first[0][0], second[0][0]])  # of the first convolution, by filters
    assert np.allclose(w.ravel(), expected[: w.size], atol=5e-3)
