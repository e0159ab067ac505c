import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab.lessons import lesson_53
from cnnlab.lessons.lesson_53 import Look

matplotlib.use("Agg")
HIT = [Look(1, 100, 16, 0.4, 0.9), Look(2, 200, 16, 0.4, 0.98)]
MISS = [Look(1, 50, 64, 0.4, 0.9)]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_steps_are_drawn_and_misses_crossed():
    ax = lesson_53.steps_to({"sgd": {16: [HIT, HIT], 64: [HIT, MISS]}}, 0.97)
    marks = [(line.get_marker(), *map(float, line.get_xydata()[0])) for line in ax.lines[:4]]
    assert marks == [("o", 16, 200), ("o", 16, 200), ("o", 64, 200), ("x", 64, 50)]
    assert list(ax.lines[4].get_xdata()) == [16]  # the line ends where one misses
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), [200, 50])  # ideal


def test_accuracy_is_drawn_over_steps():
    ax = lesson_53.accuracy_by_steps({"growing": [HIT]})
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[100, 0.9], [200, 0.98]])


def test_the_best_time_has_a_star():
    ax = lesson_53.time_to([1, 4, 16], {"a": [8.0, 4.0, 6.0], "b": [9.0, 3.0, 2.0]})
    star = next(line for line in ax.lines if line.get_marker() == "*")
    assert list(star.get_xydata()[0]) == [16, 2]
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), [8, 2, 0.5])
