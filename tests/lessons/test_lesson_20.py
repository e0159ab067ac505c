"""What the cells of lesson 20 define is what the package has; `make break` breaks the cells."""

import math

import numpy as np

from cnnlab.lessons import lesson_20
from cnnlab.measure import planner
from cnnlab.ranks import collectives
from cnnlab.ranks.virtual import World
from tests.lessons import breaking

DEFINED = breaking.defined("20", np=np, math=math)


def record_of(program):
    world = World(11)
    world.run(program)
    return world.record


def by_cell(comm):
    DEFINED["broadcast"](comm, np.zeros(5), DEFINED["tree"](comm.size))


def test_the_tree_of_the_lesson_is_that_of_the_package():
    package = record_of(lambda comm: collectives.broadcast(comm, np.zeros(5)))
    assert sorted(record_of(by_cell).messages) == sorted(package.messages)


def test_the_fit_of_the_lesson_is_that_of_the_package():
    n, seconds = np.array([1, 10, 500, 9000]), np.array([1.1e-6, 9e-7, 1.5e-6, 9e-6])
    np.testing.assert_allclose(DEFINED["fit"](4 * n, seconds), planner.fit(n, seconds))


def test_the_stepper_has_a_frame_for_each_time_at_which_a_message_arrives():
    record = record_of(by_cell)
    shown = lesson_20.steps({"tree": record, "again": record})
    assert len(shown) == len({round(m.end, 12) for m in record.messages})
    assert "tree: 11 ranks have it; again: 11 ranks have it" in shown.html
