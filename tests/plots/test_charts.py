import io
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from cnnlab.lessons import lesson_04, lesson_06
from cnnlab.measure.timing import Timing
from cnnlab.plots import charts, style


def timing(name, *samples):
    return Timing(name, samples)


LOOPS = timing("loops", 8.0, 8.0, 8.0)
HISTORY = [{"epoch": k, "loss": 2 / k, "accuracy": 1 - 0.5 / k} for k in (1, 2, 3)]
EVERY = {
    "filters": lambda: charts.filters(np.eye(5)[None, None].repeat(6, 0)),
    "speedups": lambda: charts.speedups(
        {"loops": LOOPS, "vector": timing("vector", 1.0, 0.5, 2.0)}
    ),
    "roofline": lambda: charts.roofline({"a": (1, 2e9), "b": (1, 2.1e9)}, 1.5e11, 1.2e10),
    "rates": lambda: lesson_06.rates(
        {n: timing(str(n), 1.0, 1.1, 0.9) for n in (1, 2, 4)},
        [1e9, 2e9, 4e9],
        2e9,
        what="pixels",
        counts=[0, 0, 5],
        counted="spills",
        marks={"L2": 2.5},
    ),
    "learning_curves": lambda: lesson_04.learning_curves(
        {"loops": HISTORY, "vector": HISTORY}, ("cost", "right")
    ),
    "parts": lambda: charts.parts({"loops": {"conv": 3.0, "pool": 1.0}}),
}


def draw(name):
    axes = EVERY[name]()
    return np.atleast_1d(axes)[0].figure


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", EVERY)
def test_figures_are_small_and_never_shown_and_no_text_overlaps_another(name, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_: pytest.fail("show was called"))
    before = dict(plt.rcParams)
    file = io.BytesIO()
    figure = draw(name)
    figure.savefig(file, format="png", bbox_inches="tight")
    assert 2_000 < file.tell() < 100_000
    assert dict(plt.rcParams) == before
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = []
    for ax in figure.axes:
        low, high = ax.get_xlim()
        ticks = [t.label1 for t in ax.xaxis.get_major_ticks() if low <= t.get_loc() <= high]
        for text in [*ax.texts, ax.xaxis.label, ax.yaxis.label, *ticks]:
            if text.get_text():
                boxes.append((text.get_text(), Text.get_window_extent(text, renderer)))
    for (a, box), (b, other) in itertools.combinations(boxes, 2):
        assert not box.shrunk(1, 0.8).overlaps(other.shrunk(1, 0.8)), (a, b)


def test_speedups_on_a_linear_axis_start_at_zero():
    vector = timing("vector", 1.0, 2.0, 4.0)
    ax = charts.speedups({"loops": LOOPS, "vector": vector}, per="epoch", bounds={"lanes": 16})
    assert ax.get_xscale() == "linear"
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [(0, 1), (0, 4)]
    assert ax.get_xlabel() == "times as fast as loops (8.00 s per epoch)"
    assert texts(ax) == ["1.00×  (8.00 s)", "4.00×  (2.00 s)", "lanes"]
    whiskers = ax.collections[0].get_segments()[1]
    assert whiskers[:, 0] == pytest.approx([2, 8])
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [16]


def test_speedups_over_a_wide_range_are_logarithmic_from_one():
    ax = charts.speedups(
        {"reference": timing("", 16.0), "loops": timing("", 8.0), "device": timing("", 0.2)}
    )
    assert ax.get_xscale() == "log"
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    assert ends == [pytest.approx(e) for e in [(1, 0.5), (1, 1), (1, 40)]]


def test_what_stands_before_a_comma_decides_the_colour():
    names = ["vector", "maps, 1 thread", "maps, 2 threads", "rows, 1 thread"]
    bars = charts.speedups({name: timing("", 1.0) for name in names}, "vector").patches
    shades = ["#0072b2", *style.colors(["maps", "maps", "rows"])]  # vector has its own
    assert [to_hex(bar.get_facecolor()) for bar in bars] == shades


def test_speedups_names_a_missing_base():
    with pytest.raises(ValueError, match="base: expected one of loops, got 'loop'"):
        charts.speedups({"loops": LOOPS}, base="loop")


def test_roofline_puts_points_under_the_roof():
    points = {"loops": (0.5, 3e9), "vector": (100, 5e10)}
    ax = charts.roofline(points, 1e11, 1e10, ceilings={"256-bit": 5e10})
    ceiling, peak, memory, *dots = ax.lines
    assert peak.get_xydata()[0].tolist() == [10, 1e11] == memory.get_xydata()[-1].tolist()
    assert ceiling.get_xydata()[0].tolist() == [5, 5e10]
    start = memory.get_xydata()[0]
    assert start[1] == pytest.approx(1e10 * start[0])
    assert [tuple(dot.get_xydata()[0]) for dot in dots] == list(points.values())
    assert {"loops (60% of its roof)", "vector (50% of its roof)"} <= set(texts(ax))
    assert {"peak: 100 GFLOP/s", "256-bit: 50.0 GFLOP/s", "memory: 10.0 GB/s"} <= set(texts(ax))
    assert ax.yaxis.get_major_formatter()(2e9) == "2"


def test_learning_curves_are_over_epochs_and_equal_ones_stay_visible():
    loss, accuracy = EVERY["learning_curves"]()
    assert loss.lines[0].get_xdata().tolist() == [1, 2, 3] and loss.get_xlabel() == "epoch"
    assert accuracy.lines[0].get_ydata().tolist() == [row["accuracy"] for row in HISTORY]
    assert loss.get_ylim()[0] == 0 and accuracy.get_ylabel() == "right"
    assert [line.get_linewidth() for line in accuracy.lines] == [3.5, 2]
    assert accuracy.yaxis.get_major_formatter()(0.5) == "50.0%"


@pytest.mark.parametrize("shape", [(6, 1, 5, 5), (6, 5, 5), (2, 3, 5, 5)])
def test_filters_have_one_scale_symmetric_about_zero(shape):
    w = np.linspace(-1, 3, np.prod(shape)).reshape(shape)
    ax = charts.filters(w, columns=4)
    assert len(ax.images) == 6
    left, _, bottom, _ = ax.images[4].get_extent()
    assert left == 0 and bottom > 5, "the fifth starts the second row"
    assert {image.get_clim() for image in ax.images} == {(-3, 3)}
    assert charts.filters(np.zeros(shape)).images[0].get_clim() == (-1, 1)


def test_parts_stand_end_to_end_and_the_total_at_the_end():
    ax = charts.parts({"a": {"sums": 3e-6, "sigmoid": 1e-6}, "b": {"sums": 1e-6}}, per="block")
    first, second = ax.containers[:2]
    assert [bar.get_width() for bar in first] == pytest.approx([3, 1])
    assert second[0].get_x() == pytest.approx(3) and second[0].get_width() == pytest.approx(1)
    assert ax.texts[0].get_text() == "4.00 µs: sums 3.00 µs, sigmoid 1.00 µs"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["sums", "sigmoid"]


def test_the_unit_of_the_axis_suits_the_longest_bar():
    ax = charts.parts({"a": {"sums": 3e-6}, "b": {"sums": 1e-3, "rest": 1e-3}}, per="step")
    assert ax.get_xlabel() == "ms per step"
    assert [bar.get_width() for bar in ax.containers[0]] == [0.003, 1]
    ax = charts.parts({"a": {"x": 1.5, "w": 1200}}, per="turn", unit="loads")
    assert (ax.get_xlabel(), texts(ax)) == ("loads per turn", ["1,202: x 1.5, w 1,200"])


ROWS = [
    {"kernels": name, "samples": [seconds] * 3, "n_images": 60_000, "batch": 64}
    for name, seconds in (("vector", 1.0), ("loops", 8.0))
]


@pytest.mark.parametrize("rows, base", [(ROWS, "loops"), (ROWS[:1], "vector")])
def test_the_plot_of_a_report_has_its_machine_and_is_closed(tmp_path, monkeypatch, rows, base):
    closed, machine = [], {"simd": "AVX2, 8 float32 lanes"}
    monkeypatch.setattr(plt, "close", closed.append)
    report = {"results": rows, "ratio_to": "vector", "machine": machine}
    charts.draw(report, tmp_path / "speedup.png")
    page = plt.gcf()
    assert closed == [page] and (tmp_path / "speedup.png").exists()
    assert page.get_suptitle() == "An epoch of 60,000 images, batches of 64, with AVX2"
    assert page.axes[0].get_xlabel().startswith(f"times as fast as {base} (")
