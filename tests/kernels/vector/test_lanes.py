import numpy as np
import pytest

from cnnlab.kernels.vector.lanes import LANES, from_lanes, to_lanes


@pytest.mark.parametrize("n", range(LANES + 1))
def test_images_lie_side_by_side_and_lanes_without_one_are_zero(n):
    images = np.random.default_rng(0).random((n, 5), np.float32)
    x, found = np.full((5, LANES), np.nan, np.float32), np.full_like(images, np.nan)
    to_lanes(images, x)
    assert (x[:, :n] == images.T).all() and (x[:, n:] == 0).all()
    from_lanes(x, found)
    assert (found == images).all()
