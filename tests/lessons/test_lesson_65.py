"""The copies of a star, step by step."""

import numpy as np

from cnnlab.lessons import lesson_65 as lesson
from cnnlab.ranks.collectives import perform
from cnnlab.ranks.schedules import tree
from cnnlab.ranks.virtual import World
from cnnlab.ranks.virtual.network import CUBE_MESH


def test_the_copies_to_the_server_are_told_with_their_ways():
    world = World(8, "dgx1")
    world.run(lambda comm: perform(comm, np.ones(1000, "f4"), tree(comm.rank, 8, 1000)))
    steps = lesson.copies(CUBE_MESH, world)
    assert len(steps) == 3  # from GPUs 1, 2 and 4
    assert "what GPU 1 sends is there (single). Still to come: 2." in steps.html
    assert "what GPU 4 sends is there (double). Still to come: 0." in steps.html
