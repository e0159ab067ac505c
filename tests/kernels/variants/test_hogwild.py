"""Threads that lock nothing: alone they take the steps of least squares."""

import numpy as np
import pytest

from cnnlab.kernels.variants.hogwild import hogwild
from cnnlab.runtime import thread_pool


def expected(places, x, y, w, rate):
    """The same steps, one sample after the other, in float64."""
    w = w.astype(np.float64)
    for m in range(len(y)):
        error = w[places[m]] @ x[m] - y[m]
        for k in range(places.shape[1]):
            w[places[m, k]] -= rate * error * x[m, k]
    return w


@pytest.mark.parametrize("n, n_each", [(3, 3), (40, 5), (4, 6)])  # the last: a place twice
def test_one_thread_takes_the_steps_of_least_squares(n, n_each):
    rng = np.random.default_rng(n)
    places = rng.integers(0, n, (50, n_each))
    x, y = rng.standard_normal((50, n_each), np.float32), rng.standard_normal(50, np.float32)
    w, steps = rng.standard_normal(n, np.float32), np.zeros(n, np.int64)
    right = expected(places, x, y, w, 0.05)
    with thread_pool.threads(1):
        hogwild(places, x, y, w, steps, np.float32(0.05), 1)
    np.testing.assert_allclose(w, right, atol=1e-4)
    np.testing.assert_array_equal(steps, np.bincount(places.ravel(), minlength=n))


def test_threads_without_a_common_place_take_all_steps():
    n_threads, n_each = 2, 4
    places = np.arange(8).reshape(2, 4)[np.arange(200) % n_threads]  # odd samples have their own
    x, y = np.ones((200, n_each), np.float32), np.full(200, 2, np.float32)
    w, steps = np.zeros(8, np.float32), np.zeros(8, np.int64)
    with thread_pool.threads(n_threads):
        hogwild(places, x, y, w, steps, np.float32(0.1), n_threads)
    assert (steps == 100).all()
    np.testing.assert_allclose(w, 0.5, atol=1e-4)
