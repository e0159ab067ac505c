"""What lesson 22 defines is what the package does; `make break` breaks its cells."""

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.lessons import lesson_22
from cnnlab.ranks.virtual import Link, World
from tests.lessons import breaking

DIGITS = load("digits", 330, 100)


def test_a_step_of_the_lesson_is_that_of_the_package():
    names = {"lesson": lesson_22, "np": np, "Link": Link, "World": World}
    for cell in breaking.read(breaking.NOTEBOOKS / "22_data_parallel.ipynb"):
        if "def step(" in cell.source:
            exec(cell.source, names)

    def both(comm):
        ours, theirs = lesson_22.replica(DIGITS), lesson_22.replica(DIGITS)
        for chosen in np.arange(330).reshape(10, 33):
            names["step"](comm, ours, chosen, 0.1)
            DataParallel(comm).step(theirs, chosen)
        np.testing.assert_allclose(ours.params.flat, theirs.params.flat, atol=1e-6)

    for size in (1, 3, 40):
        World(size).run(both)


@pytest.mark.parametrize("chosen", [np.arange(5), np.arange(64)])
def test_gradients_by_layer_are_those_of_the_whole_step(chosen):
    replica = lesson_22.replica(DIGITS)
    by_layer = [grads.copy() for grads in lesson_22.backward(replica, chosen)]
    replica.gradients(chosen)
    assert [grads.size for grads in by_layer] == [2170, 102, 156]
    np.testing.assert_allclose(np.concatenate(by_layer[::-1]), replica.grads.flat, atol=1e-4)
