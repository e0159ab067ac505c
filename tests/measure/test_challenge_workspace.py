"""The challenge under a cap of workspace."""

import numpy as np
import pytest

from cnnlab.kernels.variants.convolutions import conv_forward_im2col
from cnnlab.lessons.lesson_51 import BUFFERS, Piece, Plan, allocated, challenge
from cnnlab.network import Conv, Dense, Network, Sigmoid

PLACE = Network((Conv(6, 5), Dense(10), Sigmoid()), (8, 16, 16))["conv"]
PLANS = {"planned": Plan((Piece("vector", 5), Piece("im2col", 3)), 1.0, 1)}
COLUMNS = 4 * 8 * 12**2 * (8 * 25 + 6)  # bytes: im2col of all eight images


def in_pairs(x, w, b, z):
    for first in range(0, len(x), 2):
        conv_forward_im2col(x[first : first + 2], w, b, z[first : first + 2])


def wrong(x, w, b, z):
    z[:] = 0


def test_a_kernel_under_the_cap_is_timed_beside_the_plans(capsys):
    timings = challenge("conv_forward", in_pairs, PLACE, PLANS, COLUMNS / 4, repeats=2)
    assert list(timings) == ["planned", "mine"] and timings["mine"].n == 2
    assert "bytes of workspace, where the cap is" in capsys.readouterr().out


@pytest.mark.parametrize(
    "mine, cap, said",
    [
        (wrong, 1e9, "not yet right"),
        (conv_forward_im2col, COLUMNS / 4, "✗ conv_forward: "),
        (..., 1e9, "the challenge is still open"),
    ],
)
def test_any_other_is_not(mine, cap, said, capsys):
    assert challenge("conv_forward", mine, PLACE, PLANS, cap) is None
    assert said in capsys.readouterr().out


def test_what_numpy_allocates_is_counted_at_its_peak():
    def kernel(x, z):
        for _ in range(3):
            z[:] = np.ones(2**20, np.float32)[0] + x

    assert 4 * 2**20 <= allocated(kernel, [np.zeros(5), np.empty(5)]) <= 4 * 2**20 + BUFFERS
