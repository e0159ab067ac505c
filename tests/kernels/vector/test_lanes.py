import numpy as np
import pytest

from cnnlab.kernels.registers import LANES
from cnnlab.kernels.vector.lanes import from_lanes, sigmoid_lanes, to_lanes


@pytest.mark.parametrize("n", range(LANES + 1))
def test_images_lie_side_by_side_and_lanes_without_one_are_zero(n):
    images = np.random.default_rng(0).random((n, 5), np.float32)
    x, result = np.full((5, LANES), np.nan, np.float32), np.full_like(images, np.nan)
    to_lanes(images, np.arange(n), x)
    assert (x[:, :n] == images.T).all() and (x[:, n:] == 0).all()
    from_lanes(x, result)
    assert (result == images).all()


def test_the_sigmoid_is_right_to_rounding_and_keeps_nan():
    z = np.linspace(-86, 86, 1003 * LANES).astype(np.float32).reshape(-1, LANES)
    y = z.copy()
    sigmoid_lanes(y)
    near = abs(z) < 4  # 4e-7 is three roundings; far from zero, exp rounds -z as well
    for chosen, rtol in ((near, 4e-7), (~near, 5e-6)):
        exact = 1 / (1 + np.exp(-z[chosen].astype(float)))
        np.testing.assert_allclose(y[chosen], exact, rtol=rtol)
    extremes = np.resize(np.float32([np.nan, -np.inf, np.inf, -1e30, 1e30]), (5, LANES))
    result = extremes.copy()
    sigmoid_lanes(result)
    assert (np.isnan(result) == np.isnan(extremes)).all()
    assert (abs(1 - 2**-24 - result[extremes > 0]) <= 2**-24).all()
    assert (result[extremes < 0] < 1e-37).all()
