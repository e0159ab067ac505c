import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab.lessons import lesson_55

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_weights_are_drawn_and_zeros_are_not():
    uneven = np.array([[0.5, 0.5, 0], [0.5, 0.3, 0.2], [0, 0.2, 0.8]])
    axes = lesson_55.averages_mixing(
        {"ring": np.eye(3), "grid": np.full((4, 4), 0.25), "path": uneven}
    )
    said = ["ring, 1/1 each", "grid, 1/4 each", "path, 1/5 to 1/1"]
    assert [ax.get_title() for ax in axes[0]] == said
    drawn = axes[0, 0].images[0].get_array()
    assert np.ma.count(drawn) == 3 and drawn[1, 1] == 1


def test_predictions_begin_in_the_middle_and_what_vanished_is_left_out():
    series = {"slow": 0.5 ** np.arange(9.0), "gone": np.array([4.0, 2.0, 1e-16])}
    ax = lesson_55.shrinking(series, {"slow": 0.5, "gone": 0.0}, x="steps", y="size")
    measured, predicted, gone = ax.lines
    np.testing.assert_allclose(measured.get_ydata(), series["slow"])
    np.testing.assert_allclose(predicted.get_xydata()[[0, -1]], [[4, 0.5**4], [8, 0.5**8]])
    assert list(gone.get_xdata()) == [0, 1]
    assert [text.get_text() for text in ax.texts] == ["slow: × 0.500", "gone: 0 after 2 steps"]


def test_who_sends_nothing_is_drawn_at_the_left():
    points = {"data": (4e4, 0.9), "local 4": (1e4, 0.8), "local 8": (5e3, 0.8)}
    ax = lesson_55.from_consistent_to_independent(points | {"ensemble": (0, 0.7)}, 0.5)
    *dots, level = ax.lines
    assert [dot.get_xdata()[0] for dot in dots] == [4e4, 1e4, 5e3, 0]
    assert dots[1].get_color() == dots[2].get_color() != dots[0].get_color()
    assert level.get_ydata()[0] == 0.5
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "100", "1,000", "10,000"]
