from fractions import Fraction

import numpy as np
import pytest

from cnnlab.kernels.variants.convolutions import POINTS, cook_toom, cut, join, matrices

TILES = [(m, r) for r in (1, 2, 3, 4, 5) for m in range(1, 9)]


@pytest.mark.parametrize("m, r", TILES)
def test_the_matrices_are_exact(m, r):
    A, G, B = (np.array(each, dtype=object) for each in cook_toom(m, r))
    assert A.shape == (m + r - 1, m) and G.shape == (m + r - 1, r) and len(B) == m + r - 1
    rng = np.random.default_rng(0)
    x, w = ([Fraction(int(i)) for i in rng.integers(-9, 10, n)] for n in (m + r - 1, r))
    results = A.T @ ((G @ w) * (B @ x))
    assert results.tolist() == [sum(w[k] * x[i + k] for k in range(r)) for i in range(m)]


def test_f_2_3_is_the_one_of_the_paper_up_to_signs():
    A, G, B = matrices(2, 3)
    half = [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]
    assert abs(G).tolist() == np.abs(half).tolist()
    assert np.count_nonzero(B) == 8 and np.count_nonzero(A) == 6


def test_more_points_than_there_are_are_refused():
    most = len(POINTS) + 2
    cook_toom(most - 3, 3)
    with pytest.raises(ValueError, match=rf"^m \+ r: expected at most {most}, got {most + 1}$"):
        cook_toom(most - 2, 3)


def test_points_are_distinct():
    assert len({*POINTS}) == len(POINTS)


def test_tiles_overlap_by_a_kernel_and_are_zero_beyond_the_edge():
    x = np.random.default_rng(0).random((2, 3, 7, 9)).astype(np.float32)
    tiles = cut(x, 4, 2, 3, 4)
    padded = np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)))
    for n, p, q in np.ndindex(2, 3, 4):
        window = padded[n, :, 2 * p : 2 * p + 4, 2 * q : 2 * q + 4]
        np.testing.assert_array_equal(tiles[:, :, :, n, p, q].transpose(2, 0, 1), window)
    z = np.empty_like(x)
    join(cut(x, 2, 2, 4, 5), np.full(3, 0.5, np.float32), z)
    np.testing.assert_array_equal(z, x + np.float32(0.5))
