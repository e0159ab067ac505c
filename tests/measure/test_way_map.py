import pytest

from cnnlab.kernels.variants import convolutions
from cnnlab.lessons import lesson_50
from cnnlab.lessons.lesson_50 import Layer
from cnnlab.measure.timing import Timing


def test_layers_of_a_panel_change_two_sizes():
    result = dict(lesson_50.layers({"K": (3, 5)}, {"CF": (1, 4)}))
    assert result[5, 4] == Layer(C=4, F=4, K=5) and list(result) == [(3, 1), (3, 4), (5, 1), (5, 4)]


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
    with pytest.raises(AssertionError, match=r"^im2col at N=1, C=16, F=16, H=9, K=5: "):
        lesson_50.timed(Layer(N=1, H=9))


def test_the_winner_is_sure_where_the_whole_interval_says_so():
    fast, slow = Timing("a", (1.0, 1.1, 1.2)), Timing("b", (2.0, 2.1, 2.2))
    near = Timing("c", (1.2, 1.0, 1.3))
    assert lesson_50.winner({"a": fast, "b": slow}) == ("a", True)
    assert lesson_50.winner({"a": fast, "b": slow, "c": near}) == ("a", False)
