import numpy as np
import pytest

from cnnlab.kernels.variants import convolutions
from cnnlab.kernels.variants.convolutions import conv_forward_im2col
from cnnlab.lessons import lesson_50
from cnnlab.lessons.lesson_50 import ConvSize
from cnnlab.measure.timing import Timing


def test_layers_of_a_panel_change_two_sizes():
    result = dict(lesson_50.layers({"K": (3, 5)}, {"CF": (1, 4)}))
    assert result[5, 4] == ConvSize(C=4, F=4, K=5) and list(result) == [
        (3, 1),
        (3, 4),
        (5, 1),
        (5, 4),
    ]


def test_winograd_takes_part_where_its_tile_has_eight_points():
    assert [lesson_50.kernels(K)["Winograd"].keywords["m"] for K in (3, 5, 7)] == [6, 4, 2]
    assert "Winograd" not in lesson_50.kernels(9)


def test_a_panel_is_timed_and_each_way_is_right(monkeypatch):
    panels = lesson_50.sweep({"p": ({"H": (9,)}, {"N": (1, 2)})}, repeats=1)
    assert {*panels["p"]} == {(9, 1), (9, 2)}
    assert {*panels["p"][9, 1]} == {*convolutions.WAYS}
    assert panels["p"][9, 2]["FFT"].work == 2 * 2 * 16 * 16 * 25 * 25
    wrong = {"im2col": lambda x, w, b, z: z.fill(0)}
    monkeypatch.setattr(lesson_50, "kernels", lambda K: wrong)
    with pytest.raises(AssertionError, match=r"^im2col at N=1, C=16, F=16, H=9, K=5\["):
        lesson_50.timed(ConvSize(N=1, H=9))


def test_the_winner_is_sure_where_the_whole_interval_says_so():
    fast, slow = Timing("a", (1.0, 1.1, 1.2)), Timing("b", (2.0, 2.1, 2.2))
    near = Timing("c", (1.2, 1.0, 1.3))
    assert lesson_50.winner({"a": fast, "b": slow}) == ("a", True)
    assert lesson_50.winner({"a": fast, "b": slow, "c": near}) == ("a", False)


def test_work_is_counted_and_the_count_agrees_with_the_formula():
    C, F, H, W, K, m = 2, 3, 8, 8, 3, 2
    result = lesson_50.counted(1, C, F, H, W, K, m=m)
    assert result["direct"] == result["im2col"] == C * F * 36 * 9
    tile = lesson_50.of_tile(m, K, F, C)
    kernels = C * F * (4 * 3 * 3 + 4 * 3 * 4)
    assert result["Winograd"] == 9 * tile["in all"] + kernels
    assert result["FFT"] > 4 * 8 * 5 * C * F


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


def test_each_cell_names_its_winner_and_pale_ones_are_unsure():
    def timings(**seconds):
        return {name: Timing(name, tuple(s)) for name, s in seconds.items()}

    sure = timings(vector=(2, 2, 2), FFT=(1, 1, 1))
    unsure = timings(vector=(2, 2, 2), FFT=(1, 1, 3))
    own = timings(vector=(1, 1, 1), FFT=(2, 2, 2))
    axes = {"p": ({"H": (8, 9)}, {"N": (1, 2)})}
    panel = {(8, 1): sure, (8, 2): unsure, (9, 1): own, (9, 2): own}
    ax = lesson_50.winners({"p": panel}, axes)[0]
    assert [text.get_text() for text in ax.texts] == ["FFT\n2.00×"] * 2 + ["vector"] * 2
    assert [patch.get_alpha() for patch in ax.patches] == [0.8, 0.3, 0.8, 0.8]
    assert ax.get_xlabel() == "N, batch" and ax.get_ylabel() == "H, image"
