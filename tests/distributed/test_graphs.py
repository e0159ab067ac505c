"""Mixing matrices: doubly stochastic, along their edges, and how fast they mix."""

import numpy as np
import pytest

from cnnlab.distributed.averaging import (
    GRAPHS,
    contraction,
    disagreement,
    metropolis,
    powers,
    spectral_gap,
)

EACH = pytest.mark.parametrize("graph", GRAPHS)


@EACH
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 7, 12, 16, 25])
def test_rows_and_columns_add_up_to_one(graph, n):
    for weights in GRAPHS[graph].matrices(n):
        assert weights.shape == (n, n) and weights.min() >= 0
        np.testing.assert_allclose(weights.sum(0), 1)
        np.testing.assert_allclose(weights.sum(1), 1)
        assert n == 1 or weights.diagonal().min() > 0


def neighbours(graph, n, rank):
    """By whom the models that a rank averages come, in each matrix."""
    return [[int(j) for j in np.flatnonzero(w[rank]) if j != rank] for w in graph.matrices(n)]


@pytest.mark.parametrize(
    "graph, n, rank, expected",
    [
        ("ring", 6, 0, [[1, 5]]),
        ("ring", 2, 0, [[1]]),
        ("grid", 12, 5, [[1, 4, 6, 9]]),  # three rows of four
        ("grid", 12, 3, [[2, 7]]),
        ("grid", 5, 0, [[1]]),  # a line
        ("exponential", 8, 0, [[4, 6, 7]]),
        ("exponential", 6, 1, [[0, 3, 5]]),
        ("one-peer", 8, 0, [[7], [6], [4]]),
    ],
)
def test_ranks_hear_their_neighbours(graph, n, rank, expected):
    assert neighbours(GRAPHS[graph], n, rank) == expected


def test_the_gap_of_a_ring_is_known():
    """The eigenvalues of a circulant matrix are those of its row's Fourier transform."""
    for n in (5, 8, 16):
        expected = (1 + 2 * np.cos(2 * np.pi / n)) / 3
        assert contraction(GRAPHS["ring"].matrices(n)) == pytest.approx(expected)
        assert spectral_gap(GRAPHS["ring"].matrices(n)) == pytest.approx(1 - expected)


def test_the_gap_of_an_exponential_graph_is_known():
    """Ying and others 2021: 2 / (1 + log2 n) where n is a power of two."""
    for n in (4, 8, 16, 32):
        gap = spectral_gap(GRAPHS["exponential"].matrices(n))
        assert gap == pytest.approx(2 / (1 + np.log2(n)))


def test_one_peer_after_the_other_averages_exactly_where_the_ranks_are_a_power_of_two():
    for n in (1, 2, 8, 16):
        product = np.linalg.multi_dot([*GRAPHS["one-peer"].matrices(n), np.eye(n)])
        np.testing.assert_allclose(product, 1 / n)
        assert spectral_gap(GRAPHS["one-peer"].matrices(n)) == 1
    assert 0.1 < spectral_gap(GRAPHS["one-peer"].matrices(6)) < 0.9


def test_a_graph_in_two_parts_has_no_gap():
    assert spectral_gap([metropolis(4, [(0, 1), (2, 3)])]) == pytest.approx(0)


def test_an_edge_weighs_by_the_larger_degree():
    star = metropolis(4, [(0, 1), (0, 2), (0, 3)])
    np.testing.assert_allclose(star[0], 1 / 4)
    np.testing.assert_allclose(star[1], [1 / 4, 3 / 4, 0, 0])


def test_powers_of_two_lie_below_the_number_of_ranks():
    assert [powers(n) for n in (1, 2, 5, 8, 9)] == [
        [], [1], [1, 2, 4], [1, 2, 4], [1, 2, 4, 8],
    ]  # fmt: skip


def test_disagreement_is_the_root_of_the_mean_square_distance():
    assert disagreement(np.array([[3.0, 4.0], [-3.0, -4.0]])) == 5
    assert disagreement(np.ones((4, 7))) == 0
