import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab.measure.search_toy import toy
from cnnlab.plots import searches
from cnnlab.training.search import Done, Trial


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def done(*rows):
    return [Done(Trial(k, {}, 5, None, 0), a, {"test": b}) for k, (a, b) in enumerate(rows)]


SERIES = {
    "one": [done((0.9, 0.8), (0.95, 0.85)), done((0.8, 0.9), (0.7, 0.9))],
    "two": [done((0.85, 0.8), (0.8, 0.9))],
}


def test_a_race_has_a_median_and_a_band_for_each_method():
    base, other = searches.race(SERIES, title="A race")
    assert [len(ax.lines) for ax in (base, other)] == [1, 2] == [len(base.collections), 2]
    ends = [line.get_ydata()[-1] for line in other.lines]
    assert ends == pytest.approx([(0.95 + 0.8) / 2, 0.85])
    assert base.get_title() == "one\n87.5%" and other.figure.get_suptitle() == "A race"


def test_the_toy_has_a_panel_for_each_variant_and_two_ways_in_it():
    runs = toy()
    axes = searches.toy(runs)
    assert [ax.get_title().split("\n")[0] for ax in axes] == list(runs)
    for ax in axes:
        assert len(ax.lines) == 2
        assert np.allclose(ax.collections[0].get_offsets(), (0, 0))  # the best point
        assert np.allclose(ax.lines[0].get_xydata()[0], (0.9, 0.9))
    blind = {line.get_label(): line.get_xydata()[-1] for line in axes[0].lines}
    assert np.allclose(blind["began with h = (1, 0)"], (0, 0.9), atol=0.05)
    assert np.allclose(blind["with h = (0, 1)"], (0.9, 0), atol=0.05)


def test_winners_have_what_chose_them_and_what_did_not():
    ax = searches.validation_against_test(SERIES)
    pairs = {tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2}
    assert pairs == {(0.95, 0.85), (0.8, 0.9), (0.85, 0.8)}
