import matplotlib
import matplotlib.pyplot as plt
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.kernels.variants.convolutions import WAYS
from cnnlab.measure import machine
from cnnlab.plots import style

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def draw():
    return plt.subplots()[1]


def test_every_strategy_has_a_colour_of_its_own():
    assert style.COLORS.keys() == {*KERNELS, "torch"}
    assert len(set(style.COLORS.values())) == len(style.COLORS)


def test_other_names_get_other_colours_in_order():
    assert style.colors(["x", "vector", "y"])[1] == style.COLORS["vector"]
    assert style.colors(["x", "vector", "y"])[::2] == list(style.OTHERS[:2])
    names = [*style.COLORS, "a", "b", "c", "d", "e", "f"]
    assert len(set(style.colors(names))) == len(names)


def test_a_way_to_convolve_has_one_colour_in_every_plot():
    assert {*style.WAY_COLORS} == WAYS.keys() - {"vector"}
    assert style.colors(["a", "FFT"])[1] == style.colors(["FFT", "b"])[0] not in style.OTHERS


def test_the_style_is_a_context():
    with style.style():
        assert plt.rcParams["axes.grid"]
    assert not plt.rcParams["axes.grid"]


def test_a_figure_takes_title_and_caption():
    figure = style.figure(draw)(title="One core", caption="A laptop").figure
    assert (figure.get_suptitle(), figure.get_supxlabel()) == ("One core", "A laptop")
    assert style.figure(draw)().figure.get_supxlabel() == ""


def test_a_measured_figure_names_the_machine_unless_told_otherwise():
    assert style.measured(draw)().figure.get_supxlabel() == machine.caption()
    assert style.measured(draw)(caption="").figure.get_supxlabel() == ""


def test_labels_keep_their_order_and_their_distance():
    ax = draw()
    ax.set_ylim(0, 1)
    style.label_ends(ax, [(1, 0.5, "low", "red"), (1, 0.501, "high", "blue")])
    low, high = (text.xyann[1] for text in ax.texts)
    assert all(text.arrowprops["relpos"][0] == 0 for text in ax.texts)  # from where text begins
    assert [text.get_text() for text in ax.texts] == ["low", "high"]
    assert high - low == pytest.approx(0.23 / ax.figure.get_figheight(), rel=0.01)


def test_rows_run_from_top_to_bottom():
    ax = draw()
    style.as_rows(ax, ["a", "b", "c"])
    assert ax.get_ylim() == (2.5, -0.5)
