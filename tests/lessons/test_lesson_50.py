import pytest

from cnnlab.kernels import KERNELS
from cnnlab.lessons import lesson_50
from cnnlab.lessons.lesson_50 import ConvSize, implicit_gemm
from cnnlab.measure.timing import Timing

TWO = {"vector": KERNELS["vector"].conv_forward, "rows": implicit_gemm.model()}


def test_a_panel_is_timed_and_each_kernel_is_right(monkeypatch):
    monkeypatch.setattr(lesson_50, "AXES", {"p": ({"H": (9,)}, {"N": (1, 2)})})
    asked = []
    panels = lesson_50.sweep(lambda K: asked.append(K) or TWO, repeats=1)
    assert {*panels["p"]} == {(9, 1), (9, 2)} and asked == [5, 5]
    assert {*panels["p"][9, 1]} == {*TWO}
    wrong = TWO | {"im2col": lambda x, w, b, z: z.fill(0)}
    with pytest.raises(AssertionError, match=r"^im2col at N=1, C=16, F=16, H=9, K=5\["):
        lesson_50.checked(wrong, ConvSize(N=1, H=9))


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
