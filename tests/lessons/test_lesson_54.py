"""The server in the cells of lesson 54 is the package's; `make break` breaks those cells."""

import math
from collections import Counter, defaultdict
from functools import partial

import numba
import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.server import Server
from cnnlab.lessons import lesson_54 as lesson
from cnnlab.measure import timing
from cnnlab.ranks.virtual import World
from tests.lessons import breaking
from tests.replicas import replica_of

CELLS = breaking.read(breaking.NOTEBOOKS / "54_server.ipynb")
MATTER = [CELLS[k].source for k in breaking.matter(CELLS)]
DIGITS = load("digits", 400, 50)


def names():
    """What the lesson's cells of matter define."""
    defined = {"np": np, "numba": numba, "math": math, "partial": partial, "lesson": lesson}
    defined |= {"measure": timing, "tasks": [lesson.TrainingTask(DIGITS)]}
    exec("\n\n".join(MATTER).replace("parallel=True", "parallel=False"), defined)
    return defined


class Counting(Server):
    """A server that counts, for each gradient, the updates that its worker had missed."""

    def steps(self, replica, order):
        self.n_applied, self.read, self.missed = 0, defaultdict(int), Counter()
        return super().steps(replica, order)

    def reply(self, shard, worker):
        goes_on = super().reply(shard, worker)
        if goes_on:
            self.read[worker] = self.n_applied
        return goes_on

    def apply(self, shard, worker, gradient):
        self.missed[self.n_applied - self.read[worker]] += 1
        self.n_applied += 1
        super().apply(shard, worker, gradient)


def packaged(staleness, n_workers, n_updates, **pace):
    """The same training by the package's server: parameters, and counts of updates missed."""
    task, size = lesson.TrainingTask(DIGITS), lesson.SIZE
    order = np.take(task.order, np.arange(size * n_updates), mode="wrap")

    def program(comm):
        replica = replica_of(DIGITS, batch=size * n_workers, rate=0.1 * n_workers)
        gradients = replica.gradients
        replica.gradients = lambda some: comm.compute(lesson.SECONDS) or gradients(some)
        method = Counting(comm, "any" if staleness == math.inf else staleness)
        method.steps(replica, order)
        return replica.params.flat, getattr(method, "missed", None)

    return World(1 + n_workers, lesson.NETWORK, **pace).run(program)[0]


@pytest.mark.parametrize(
    "staleness, pace", [(0, {}), (0, {"speed": {1: 5.0}, "jitter": 0.5}), (1, {}), (math.inf, {})]
)
def test_the_lessons_server_finds_what_the_packages_finds(staleness, pace):
    cells = names()
    how = lesson.TrainingTask(DIGITS), 4, staleness, 80, cells["descend"]
    run = lesson.run(cells["work"], cells["serve"], *how, **pace)
    params, missed = packaged(staleness, 4, 80, **pace)
    np.testing.assert_allclose(run.params, params, atol=1e-5)
    assert abs(run.params - how[0].start).max() > 0.1
    if staleness:
        assert dict(zip(*np.unique(run.missed, return_counts=True), strict=True)) == missed
