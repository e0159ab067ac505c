import matplotlib
import matplotlib.pyplot as plt
import pytest

from cnnlab.lessons import lesson_51
from cnnlab.lessons.lesson_51 import Costs, Piece, Plan
from cnnlab.measure.timing import Timing

matplotlib.use("Agg")

TIMINGS = {
    "vector": {1: Timing("", (2e-6,)), 4: Timing("", (8e-6,))},
    "FFT": {1: Timing("", (6e-6,)), 4: Timing("", (4e-6,))},
}
COSTS = Costs(TIMINGS, {"vector": {1: 1024, 4: 1024}, "FFT": {1: 4096, 4: 8192}})
SMALL = Plan((Piece("vector", 1), Piece("vector", 3)), 8e-3, 1024)
LARGE = Plan((Piece("FFT", 4),), 4e-3, 2**21)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_costs_are_for_each_image():
    time, space = lesson_51.workspaces_costs(COSTS)
    assert [list(c.lines[0].get_ydata()) for c in time.containers] == [
        pytest.approx([2, 2]),
        pytest.approx([6, 1]),
    ]
    assert [list(line.get_ydata()) for line in space.lines] == [[1, 1], [4, 8]]
    assert {text.get_text() for text in time.texts} == {"vector", "FFT"}
    ticks = [label.get_text() for label in space.get_yticklabels()]
    assert ticks[:3] == ["1.00 KiB", "32.0 KiB", "1.00 MiB"]


def test_the_front_stands_beside_the_ways_undivided_and_what_was_run():
    ax = lesson_51.workspaces_front([SMALL, LARGE], {"FFT": LARGE}, [(1024, 9e-3), (1024, 7e-3)])
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines]
    assert lines[1] == ([1, 2048], [8, 4])
    assert lines[2] == ([2048], [4]) and lines[3] == ([1, 1], [9, 7])
    assert ax.texts[0].get_text() == "FFT"
    assert lines[0][0][:2] == [1, 2048] and lines[0][1][-1] == 4


def test_plans_are_rows_of_micro_batches():
    ax = lesson_51.plans({"1 KiB": SMALL, "2 MiB": LARGE})
    bars = [(bar.get_x(), bar.get_width(), round(bar.get_y() + 0.33)) for bar in ax.patches]
    assert bars == [(0, 1, 0), (1, 3, 0), (0, 4, 1)]
    assert [text.get_text() for text in ax.texts] == ["8.00 ms, 1.00 KiB", "4.00 ms, 2.00 MiB"]
    assert ax.patches[0].get_facecolor() == ax.patches[1].get_facecolor()
    assert ax.patches[0].get_facecolor() != ax.patches[2].get_facecolor()


def test_layers_share_a_cap_end_to_end():
    ax = lesson_51.shared({"2 MiB": {"a": LARGE, "b": LARGE}, "1 MiB": {"a": SMALL, "b": LARGE}})
    first, second = ax.containers
    assert [bar.get_width() for bar in first] == pytest.approx([2, 2**-10])
    assert [bar.get_x() for bar in second] == pytest.approx([2, 2**-10])
    assert [text.get_text() for text in ax.texts] == ["8.00 ms planned", "12.0 ms planned"]


def test_an_operation_has_one_hue_and_each_layer_its_shade():
    names = ["conv1_forward", "conv2_forward", "conv1_backward_weights"]
    ax = lesson_51.shared({"2 MiB": dict.fromkeys(names, LARGE)})
    assert [text.get_text() for text in ax.texts] == ["1", "2", "1", "12.0 ms planned"]
    first, second, other = (bars[0].get_facecolor() for bars in ax.containers)
    assert len({first, second, other}) == 3
    assert [max(range(3), key=color.__getitem__) for color in (first, second, other)] == [2, 2, 0]
