import matplotlib
import matplotlib.pyplot as plt
import pytest

from cnnlab.measure.fooling import Exhibit
from cnnlab.plots.exhibits import exhibits

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_each_exhibit_has_its_number_its_claim_and_bars_of_the_right_length():
    shown = [
        Exhibit("So.", {"a": 1.0, "b": 3.0}, "ms", ""),
        Exhibit("No.", {"a": 90.0}, "%", "", 89),
    ]
    axes = exhibits(shown)
    assert [ax.get_title(loc="left") for ax in axes.flat] == ["1  So.", "2  No."]
    assert [bar.get_width() for bar in axes[0, 0].patches] == [1, 3]
    assert axes[0, 0].get_xlim()[0] == 0 and axes[0, 1].get_xlim()[0] == 89
