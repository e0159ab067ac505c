import numpy as np
import pytest

from cnnlab.kernels.variants.convolutions import conv_forward_im2col
from cnnlab.lessons import lesson_50


def test_work_is_counted_and_the_count_agrees_with_the_formula():
    C, F, H, W, K, m = 2, 3, 8, 8, 3, 2
    result = lesson_50.counted(1, C, F, H, W, K, m=m)
    assert result["direct"] == result["im2col"] == C * F * 36 * 9
    tile = lesson_50.of_tile(m, K, F, C)
    kernels = C * F * (4 * 3 * 3 + 4 * 3 * 4)
    assert result["Winograd"] == 9 * tile["in all"] + kernels
    assert result["FFT"] > 4 * 8 * 5 * C * F


def test_on_the_courses_layer_tiles_of_four_lose():
    tile = lesson_50.of_tile(4, 5, filters=6)
    assert (tile["in all"], tile["direct"]) == (3712, 2400)
    assert tile["products"] == 6 * 64 and tile["transforms"] == 1024 + 6 * 384


def test_a_wrong_result_is_not_counted():
    arrays = lesson_50.inputs(1, 1, 1, 4, 4, 3)

    def forgets_bias(x, w, b, z):
        for p, q in np.ndindex(2, 2):
            z[0, 0, p, q] = (w[0, 0] * x[0, 0, p : p + 3, q : q + 3]).sum()

    with pytest.raises(AssertionError):
        lesson_50.multiplications(forgets_bias, *arrays)


def test_arrays_are_left_as_they_are():
    arrays = lesson_50.inputs(1, 1, 1, 4, 4, 3)
    before = [a.copy() for a in arrays]
    assert lesson_50.multiplications(conv_forward_im2col, *arrays) == 36
    assert all(map(np.array_equal, arrays, before))


def test_the_table_as_printed():
    work, depth = zip(*lesson_50.as_printed(1, 1, 6, 28, 28, 5, m=8).values(), strict=True)
    assert work[:2] == (86_400, 86_400) and depth == (6, 6, 20, 14)
    assert work[2] == pytest.approx(13 * 784 * np.log2(784) + 6 * 784)
    assert work[3] == 4 * (25 + 20 + 32 + 32 + 64) + 6 * 16


def test_errors_grow_with_the_tile():
    small, middle, large = (lesson_50.winograd_errors(m, 3, n=200) for m in (2, 4, 8))
    assert 0.5 < small < 5 < middle < 200 < 2000 < large
