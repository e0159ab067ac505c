import itertools

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab.lessons import lesson_56
from cnnlab.lessons.lesson_56 import Cost
from cnnlab.measure.timing import Timing

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_what_arrives_is_drawn_as_a_running_mean():
    ax = lesson_56.arrivals({"by chance": np.array([0, 1, 2, 1], np.float32)}, 0.9)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0, 0.5, 1, 1])
    assert list(ax.lines[1].get_ydata()) == [0.9, 0.9]


def test_walks_are_drawn_beside_the_mean():
    ax = lesson_56.walks({"signs": np.arange(5.0)}, -2)
    assert list(ax.lines[0].get_ydata()) == [0, 1, 2, 3, 4]
    assert list(ax.lines[1].get_ydata()) == [0, -2] and "the mean gradient" in texts(ax)


def test_speeds_are_drawn_beside_a_copy_and_what_pays_for_each():
    def group(seconds):
        return Timing("x", (seconds,) * 3, work=8e9)

    result = {"copy": {"encode": group(0.5), "decode": group(0.5)}}
    result |= {way: {"encode": group(2), "decode": group(1)} for way in ("fp16", "qsgd4")}
    ax = lesson_56.bits_speeds(result, {"fp16": 7e9, "qsgd4": 3e9}, link="a link")
    encode, decode, marks, copy = ax.lines
    assert list(encode.get_xdata()) == [4, 4] and list(decode.get_xdata()) == [8, 8]
    assert marks.get_xydata().tolist() == [[7, 0], [3, 1]] and copy.get_xdata()[0] == 16
    assert texts(ax) == [f"encode 4, decode 8\npays from {need}" for need in (7, 3)]
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"copy: 16", "pays on a link", "encode", "decode"} == set(said)


def test_sums_are_lines_dots_and_stars():
    costs = {"none": Cost(4000, 1e-6, 1e-6), "short": Cost(500, 10e-6, 5e-6)}
    result = {rate: {way: [1e-3, 2e-3, 9e-3] for way in costs} for rate in (1e9, 1e6)}
    ax = lesson_56.bits_sums(costs, result, 2)
    first, dots, _, _, star = ax.lines
    np.testing.assert_allclose(first.get_ydata()[0], 1e3 * costs["none"].seconds(2, 1e6))
    np.testing.assert_allclose(dots.get_xydata(), [[1, 2], [1000, 2]])
    assert star.get_marker() == "*" and 100 < star.get_xdata()[0] < 200


def test_names_of_points_that_lie_together_do_not_overlap():
    ax = lesson_56.accuracy_by_bits({"a": (2.0, [0.8]), "b": (2.1, [0.81, 0.9]), "c": (2.0, [0.1])})
    low = {text.get_text(): text.xyann[1] for text in ax.texts}
    assert low["a"] == low["c"] == -14 > low["b"]
    wide = lesson_56.accuracy_by_bits({"a long name": (1.2, [0.1]), "another one": (2.0, [0.1])})
    boxes = [text.get_window_extent() for ax in (ax, wide) for text in ax.texts]
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    assert list(ax.lines[1].get_ydata()) == [0.81, 0.9]
    assert [line.get_color() == lesson_56.GREY for line in ax.lines] == [False, False, True]
