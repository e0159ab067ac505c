import matplotlib.pyplot as plt
import pytest

from cnnlab.plots import charts


def test_parts_stand_end_to_end_and_the_total_at_the_end():
    ax = charts.parts({"a": {"sums": 3e-6, "sigmoid": 1e-6}, "b": {"sums": 1e-6}}, per="block")
    first, second = ax.containers[:2]
    assert [bar.get_width() for bar in first] == pytest.approx([3, 1])
    assert second[0].get_x() == pytest.approx(3) and second[0].get_width() == pytest.approx(1)
    assert ax.texts[0].get_text() == "4.00 µs: sums 3.00 µs, sigmoid 1.00 µs"
    by_layer = charts.layer_times({"a": {"conv": 3.0, "pool": 1.0, "sigmoid": 1.0}}).containers
    assert by_layer[2][0].get_facecolor() == second[0].get_facecolor()  # the sigmoid's, everywhere
    plt.close("all")


def test_the_unit_of_the_axis_suits_the_longest_bar():
    ax = charts.parts({"a": {"sums": 3e-6}, "b": {"sums": 1e-3, "rest": 1e-3}}, per="step")
    assert ax.get_xlabel() == "ms per step"
    assert [bar.get_width() for bar in ax.containers[0]] == [0.003, 1]
