import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.lessons import lesson_33
from cnnlab.lessons.lesson_33 import Cost, modelled

SOURCE = """
extern "C" __global__ void copy(const float* from, float* to)
{
    to[threadIdx.x] = from[threadIdx.x];
}
"""


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_costs_are_bars_with_their_shares():
    result = [Cost("a", 3e6, 1e-6), Cost("b", 1e6, 3e-6)]
    ax = lesson_33.launches_costs(result)
    assert [bar.get_width() for bar in ax.patches] == [3, 1]
    assert [text.get_text() for text in ax.texts] == ["3 MB, 75.0%", "1 MB, 25.0%"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0 a", "1 b"]
    ax = lesson_33.launches_costs(result, timed=True)
    assert ax.texts[1].get_text() == "3.00 µs, 75.0%" and "events" in ax.get_xlabel()


def test_a_graph_has_a_row_for_each_level_and_an_arrow_for_each_array():
    a, b, c, d = (np.zeros(4, np.float32) for _ in range(4))
    kernels = cuda.traced_device(SOURCE, traces := [])
    for pair in ((a, b), (b, c), (b, d), (c, a)):
        kernels.launch("copy", (1,), (4,), *pair)
    ax = lesson_33.needs(traces)
    assert len(ax.patches) == 3
    at = {text.get_text().split()[0]: text.get_position() for text in ax.texts}
    assert [at[n][1] for n in "0123"] == [0, 1, 1, 2] and at["1"][0] != at["2"][0]
    assert ax.texts[0].get_text() == "0 copy\nto 16 B" and ax.texts[3].get_text() == "3 copy"


def test_a_launch_is_asked_for_queued_and_done():
    result = modelled([Cost("a", 0, 5e-6), Cost("b", 0, 1e-6)], 2e-6)
    (ax,) = lesson_33.over_time({"together": result})
    boxes = {(b.get_y() + 0.25, round(b.get_x(), 6), round(b.get_width(), 6)) for b in ax.patches}
    assert {(0, 0, 2), (0, 2, 2), (1, 2, 5), (1, 7, 1)} <= boxes
    assert (0, 4, 4) in boxes, "the host waits at the end"
    lines = np.array([line.get_xdata() for line in ax.lines])
    assert lines == pytest.approx(np.array([[2, 2], [4, 7]]))
    assert ax.get_title(loc="left") == "together: 8.00 µs"
    queued = [type(h).__name__ for h in ax.get_legend().legend_handles]
    assert queued == 3 * ["Rectangle"] + ["Line2D"]
    axes = lesson_33.over_time({"together": result, "again": result})
    assert "own scale" in axes[-1].get_xlabel() and "own scale" not in ax.get_xlabel()
