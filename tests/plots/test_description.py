import matplotlib
import matplotlib.pyplot as plt
import pytest
from IPython.core.formatters import DisplayFormatter

from cnnlab.measure.timing import Timing
from cnnlab.plots import charts, pictures, style

matplotlib.use("Agg")
TIMINGS = {"loops": Timing("loops", (8.0,) * 3), "vector": Timing("vector", (1.0,) * 3)}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_a_notebook_is_told_the_alternative_text_of_the_image():
    page = charts.speedups(TIMINGS, title="Vectors pay", per="epoch").figure
    formats, metadata = DisplayFormatter().format(page)
    alt = metadata["image/png"]["alt"]
    assert alt == style.description(page, "")
    assert "image/png" not in formats  # the image is the backend's
    assert alt.startswith("Vectors pay. Horizontal: times faster than loops")
    for part in ("Vertical: loops, vector", "Labels: 1.00×  (8.00 s)".replace("  ", " "), "8.00×"):
        assert part in alt
    assert '"' not in alt and "\n" not in alt


def test_a_figure_without_a_title_says_what_is_drawn():
    page = charts.filters([[[1.0, -1.0], [0.5, 0.0]]]).figure
    alt = page._repr_mimebundle_()[1]["image/png"]["alt"]
    assert alt.startswith("Filters (F,C,K,K) or (F,K,K)") and "filter 0" in alt


def test_all_panels_are_described_and_long_lists_cut():
    page = pictures.loads({"blocks": [0, 1], "cards": [1, 0]}, 2)[0].figure
    alt = style.description(page, "Loads")
    assert alt.startswith("Loads. blocks. Horizontal: tasks. Vertical: thread. cards.")
    ax = plt.figure().subplots()
    for k in range(20):
        ax.text(0, 0, f'"{k}"')
    alt = style.description(ax.figure, "Many")
    assert alt.endswith("'11' and 8 more.") and "'12'" not in alt
