import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab.measure.planner.plan import Plan
from cnnlab.plots import planner

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_every_way_is_a_point_of_its_familys_colour():
    plans = {
        n: Plan(n, 1e-3, np.zeros((2, 2)), 0) for n in ("data", "local every 8", "gossip ring")
    }
    pairs = planner.pairs(
        plans, {"data": 2e-3, "local every 8": 3e-3, "gossip ring": 4e-3}, "eight"
    )
    assert pairs["eight: data"] == (1e-3, 2e-3)
    (ax,) = planner.planned_and_seen({"here": pairs})[0]
    ideal, _, data, _, averages = ax.lines
    assert (ideal.get_xdata() == ideal.get_ydata()).all()
    assert data.get_label() == "data" and list(data.get_ydata()) == [2]
    assert averages.get_label() == "averages" and list(averages.get_ydata()) == [3, 4]
    pairs["lenet5: data"] = 5e-3, 6e-3
    (ax,) = planner.planned_and_seen({"here": pairs}, filled="lenet5")[0]
    both, full = ax.lines[1:3]
    assert (list(both.get_ydata()), both.get_fillstyle()) == ([2, 6], "none")
    assert (list(full.get_ydata()), full.get_fillstyle()) == ([6], "full")


def test_the_first_are_thick_and_who_never_gets_there_is_left_out():
    seconds = {"a": [1.0, 4.0], "b": [2.0, 3.0], "c": [9.0, 9.0], "never": [np.inf, np.inf]}
    ax = planner.seconds_over_bandwidth([1e6, 1e7], seconds)
    thin, thick = ax.lines[::2], ax.lines[1::2]
    assert [list(line.get_ydata()) for line in thin] == [[1, 4], [2, 3], [9, 9]]
    assert [np.isnan(line.get_ydata()).tolist() for line in thick] == [
        *([False, True], [True, False], [True, True])
    ]
    assert thin[2].get_color() == planner.GREY != thin[0].get_color()
    assert {text.get_text() for text in ax.texts} == {"a", "b", "c"}
