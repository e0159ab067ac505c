import itertools

import numpy as np
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.lessons import lesson_50
from cnnlab.lessons.lesson_50 import ConvSize, implicit_gemm
from cnnlab.measure.timing import Timing

TWO = {"vector": KERNELS["vector"].conv_forward, "rows": implicit_gemm.model()}


def test_layers_of_a_panel_change_two_sizes():
    result = dict(lesson_50.layers({"K": (3, 5)}, {"CF": (1, 4)}))
    assert result[5, 4] == ConvSize(C=4, F=4, K=5)
    assert list(result) == [(3, 1), (3, 4), (5, 1), (5, 4)]


def test_a_panel_is_timed_and_each_kernel_is_right(monkeypatch):
    monkeypatch.setattr(lesson_50, "AXES", {"p": ({"H": (9,)}, {"N": (1, 2)})})
    asked = []
    panels = lesson_50.sweep(lambda K: asked.append(K) or TWO, repeats=1)
    assert {*panels["p"]} == {(9, 1), (9, 2)} and asked == [5, 5]
    assert {*panels["p"][9, 1]} == {*TWO}
    wrong = TWO | {"im2col": lambda x, w, b, z: z.fill(0)}
    with pytest.raises(AssertionError, match=r"^im2col at N=1, C=16, F=16, H=9, K=5\["):
        lesson_50.checked(wrong, ConvSize(N=1, H=9))


def test_a_stage_ends_with_its_lap(monkeypatch):
    now = itertools.count()
    monkeypatch.setattr(lesson_50.time, "perf_counter", lambda: float(next(now)))

    def kernel(x, w, b, z, lap=lambda stage: None):
        z[:] = 0
        lap("first")
        next(now)
        lap("second")

    result = lesson_50.stages({"a": kernel}, ConvSize(N=1), repeats=3)
    assert result == {"a": {"first": 1, "second": 2}}


def test_the_winner_is_sure_where_the_whole_interval_says_so():
    fast, slow = Timing("a", (1.0, 1.1, 1.2)), Timing("b", (2.0, 2.1, 2.2))
    near = Timing("c", (1.2, 1.0, 1.3))
    assert lesson_50.winner({"a": fast, "b": slow}) == ("a", True)
    assert lesson_50.winner({"a": fast, "b": slow, "c": near}) == ("a", False)


def test_errors_grow_with_the_tile():
    points = [0, 1, -1, 2, -2, 0.5, -0.5, 4, -4]
    errors = (lesson_50.error(lesson_50.numeric(points[: m + 1], 3), n=200) for m in (2, 4, 8))
    small, middle, large = errors
    assert 0.5 < small < 5 < middle < 200 < 2000 < large


def test_each_cell_names_its_winner_and_pale_ones_are_unsure(monkeypatch, capsys):
    def timings(**seconds):
        return {name: Timing(name, tuple(s)) for name, s in seconds.items()}

    sure = timings(vector=(2, 2, 2), FFT=(1, 1, 1))
    unsure = timings(vector=(2, 2, 2), FFT=(1, 1, 3))
    own = timings(vector=(1, 1, 1), FFT=(2, 2, 2))
    monkeypatch.setattr(lesson_50, "AXES", {"p": ({"H": (8, 9)}, {"N": (1, 2)})})
    panel = {(8, 1): sure, (8, 2): unsure, (9, 1): own, (9, 2): own}
    ax = lesson_50.drawn_map({"p": panel})[0]
    assert [text.get_text() for text in ax.texts] == ["FFT\n2.00×"] * 2 + ["vector"] * 2
    assert [patch.get_alpha() for patch in ax.patches] == [0.8, 0.3, 0.8, 0.8]
    assert ax.get_xlabel() == "N, batch" and ax.get_ylabel() == "H, image"
    lesson_50.winners({"p": panel})
    assert capsys.readouterr().out == "fastest on FFT 2, vector 2\n"


def test_a_frame_of_im2col_has_the_columns_so_far():
    image = np.arange(9.0).reshape(3, 3)
    matrix = np.lib.stride_tricks.sliding_window_view(image, (2, 2)).reshape(4, 4).T
    html = lesson_50.unfolding(image, matrix, pixel=4).html
    assert "9 pixels become 16 numbers" in html
    assert "Window 4 is column 4: 16 numbers so far, pixel 4 copied 4 times." in html
