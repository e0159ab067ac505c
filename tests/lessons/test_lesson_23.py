"""What lesson 23 defines is what the package has; `make break` breaks its cells."""

import numpy as np
import pytest

from cnnlab.lessons import lesson_23
from cnnlab.ranks import collectives, schedules
from cnnlab.ranks.virtual import World
from tests.lessons import breaking


@pytest.fixture(scope="module")
def defined():
    """The names of the lesson's cells of matter."""
    return breaking.defined("23", "import numpy as np")


@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_a_schedule_of_the_lesson_is_that_of_the_package(defined, name):
    here, rng = defined[name], np.random.default_rng(23)
    for size, n in [(1, 5), *zip(rng.integers(2, 40, 12), rng.integers(0, 99, 12), strict=True)]:
        for rank in range(size):
            package = schedules.SCHEDULES[name](rank, int(size), int(n))
            assert list(here(rank, int(size), int(n))) == list(package), (rank, size, n)


def test_perform_of_the_lesson_is_that_of_the_package(defined):
    here = defined["perform"]

    def both(comm):
        a, b = (np.random.default_rng(comm.rank).random(50, np.float32) for _ in range(2))
        here(comm, a, schedules.rabenseifner(comm.rank, comm.size, 50))
        collectives.perform(comm, b, schedules.rabenseifner(comm.rank, comm.size, 50))
        return a.tobytes() == b.tobytes()

    assert all(World(7).run(both))


def test_the_stepper_has_a_frame_a_round_and_counts_what_is_sent():
    two = {"ring": schedules.ring, "rabenseifner": schedules.rabenseifner}
    shown = lesson_23.steps(two)
    assert len(shown) == 7, "before, and six rounds of the ring"
    end = "Round 6. ring: 6/4 m sent by each rank, 16 sums complete; rabenseifner: 6/4 m"
    assert end in shown.html
    half = "Round 3. ring: 3/4 m sent by each rank, 4 sums complete; rabenseifner: 4/4 m"
    assert half in shown.html
