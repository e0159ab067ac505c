"""Theory and runs on a parabola."""

import numpy as np
import pytest

from cnnlab.distributed.averaging import GRAPHS, contraction
from cnnlab.lessons import lesson_55


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("rate", [0.5, 1.0, 1.5])
def test_ranks_are_stable_up_to_the_largest_moving_rate_and_not_beyond(rate, n):
    largest = lesson_55.largest_moving_rate(rate, n)
    below, at, beyond = (lesson_55.elastic_matrix(rate, f * largest, 1, n) for f in (0.99, 1, 1.01))
    assert lesson_55.growth(below) < 1 < lesson_55.growth(beyond)
    assert lesson_55.growth(at) == pytest.approx(1)
    ends = [
        abs(lesson_55.elastic_path(rate, f * largest, 1500, n_ranks=n)[-1]).max()
        for f in (0.98, 1.02)
    ]
    assert ends[0] < 1e-3 and ends[1] > 1e3


def test_the_bound_of_one_worker_is_that_of_the_paper():
    assert lesson_55.largest_moving_rate(0.5) == pytest.approx((4 - 2 * 0.5) / (4 - 0.5))


def test_the_method_takes_the_steps_of_the_matrix():
    places = lesson_55.elastic_path(0.3, 0.4, 5, curvature=2.0, n_ranks=2)
    matrix = lesson_55.elastic_matrix(0.3, 0.4, curvature=2.0, n_ranks=2)
    np.testing.assert_allclose(places[5], np.linalg.matrix_power(matrix, 5) @ [1, -0.7])


def test_measured_growth_is_that_of_the_slowest_direction():
    assert lesson_55.measured_growth(0.9 ** np.arange(21.0)[:, None]) == pytest.approx(0.9)
    result = lesson_55.measured_growth(lesson_55.elastic_path(0.5, 0.9, 100))
    assert result == pytest.approx(lesson_55.growth(lesson_55.elastic_matrix(0.5, 0.9)), rel=1e-6)


@pytest.mark.parametrize("graph", ["ring", "grid", "exponential"])
def test_disagreement_decays_by_the_second_eigenvalue(graph):
    path = lesson_55.gossip_path(graph, 9, 40)
    factor = contraction(GRAPHS[graph].matrices(9))
    assert (path[40] / path[30]) ** 0.1 == pytest.approx(factor, rel=0.01)


def test_one_peer_after_the_other_agrees_exactly():
    path = lesson_55.gossip_path("one-peer", 8, 3)
    assert path[2] > 0.1 and path[3] < 1e-12
