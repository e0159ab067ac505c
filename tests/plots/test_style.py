import matplotlib.pyplot as plt
import pytest
from IPython.core.formatters import DisplayFormatter

from cnnlab.kernels import KERNELS
from cnnlab.measure import machine
from cnnlab.measure.timing import Timing
from cnnlab.plots import charts, pictures, style
from cnnlab.ranks.schedules import ring, tree


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
    assert style.colors(["a", "FFT"])[1] == style.colors(["FFT", "b"])[0] not in style.OTHERS


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


TIMINGS = {"loops": Timing("loops", (8.0,) * 3), "vector": Timing("vector", (1.0,) * 3)}


def test_a_notebook_is_told_the_alternative_text_of_the_image():
    page = charts.speedups(TIMINGS, title="Vectors pay", per="epoch").figure
    formats, metadata = DisplayFormatter().format(page)
    alt = metadata["image/png"]["alt"]
    assert alt == style.description(page, "")
    assert "image/png" not in formats  # the image is the backend's
    assert alt.startswith("Vectors pay. Horizontal: times as fast as loops")
    for part in ("Vertical: loops, vector", "Labels: 1.00×  (8.00 s)".replace("  ", " "), "8.00×"):
        assert part in alt
    assert '"' not in alt and "\n" not in alt


def test_a_figure_without_a_title_says_what_is_drawn():
    page = charts.filters([[[1.0, -1.0], [0.5, 0.0]]]).figure
    alt = page._repr_mimebundle_()[1]["image/png"]["alt"]
    assert alt.startswith("Filters (F,C,K,K) or (F,K,K)") and "filter 0" in alt


def test_all_panels_are_described_and_long_lists_cut():
    page = pictures.schedules({"ring": ring, "tree": tree}, 4, 8)[0].figure
    alt = style.description(page, "Schedules")
    assert alt.startswith("Schedules. ring, 6 rounds. Horizontal: rank. Vertical: round. tree, ")
    ax = plt.figure().subplots()
    for k in range(20):
        ax.text(0, 0, f'"{k}"')
    alt = style.description(ax.figure, "Many")
    assert alt.endswith("'11' and 8 more.") and "'12'" not in alt
