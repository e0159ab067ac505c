import numpy as np
import pytest

from cnnlab.cuda.emulator.traced import Traced
from cnnlab.cuda.step import FusedStep
from cnnlab.lessons import lesson_33
from cnnlab.lessons.lesson_33 import Launch, Work, busy, costs, modelled, timeline
from cnnlab.network import Network
from tests.cuda.test_cupy_device import stand_in  # noqa: F401

IMAGES = np.random.default_rng(0).random((8, 1, 28, 28), np.float32)


def make(batch):
    return FusedStep(Network().parameters(), IMAGES, np.arange(8) % 10, batch=batch)


def test_the_slower_of_host_and_device_sets_the_pace():
    quick, slow = [Work("k", 0, 1.0)] * 3, [Work("k", 0, 5.0)] * 3
    assert [one.begin for one in modelled(quick, 2.0)] == [2, 4, 6]
    assert [one.begin for one in modelled(slow, 2.0)] == [2, 7, 12]
    assert [one.asked for one in modelled(slow, 2.0)] == [0, 2, 4]
    assert [one.begin for one in modelled(quick, 2.0, waits=True)] == [2, 5, 8]
    assert busy(modelled(quick, 2.0)) == pytest.approx(3 / 7)


def test_bytes_are_counted_and_grow_with_the_batch():
    result = costs(make, [4, 8])
    assert [cost.kernel for cost in result[4]] == ["image_gradients", "add_and_update"]
    more = 4 * (784 + 1 + 1 + 2428 + 1) * 4  # of each image pixels, label, number; a row of sums
    assert result[8][0].moved - result[4][0].moved == pytest.approx(more, rel=0.01)
    bandwidth = lesson_33.GPUS["T4"].bandwidth
    assert result[4][0].seconds == pytest.approx(result[4][0].moved / bandwidth)
    assert (
        timeline(make, 4, result[4]) == modelled(result[4]) and "not measured" in lesson_33.said()
    )


@pytest.mark.parametrize("waits", [False, True])
def test_on_a_gpu_events_tell(stand_in, waits):  # noqa: F811
    result = costs(make, [4])[4]
    assert [cost.seconds for cost in result] == [0.002 / lesson_33.COPIES] * 2
    launches = timeline(make, 4, result, waits=waits)
    assert all(isinstance(one, Launch) and one.asked <= one.returned for one in launches)
    assert [one.end for one in launches] == pytest.approx([0.002, 0.004])  # an event each
    assert all(one.begin >= one.asked for one in launches) and launches[1].begin >= 0.002
    assert "measured on GPU: Tesla T4" in lesson_33.said()


def test_work_begins_after_it_was_asked_for_and_after_what_was_there_before(
    stand_in,  # noqa: F811
    monkeypatch,
):
    stamps = [(0.001, 0.002, 0.003), (0.002, 0.003, 0.005), (0.007, 0.008, 0.009)]
    monkeypatch.setattr(lesson_33.cuda, "stamps", lambda calls, waits: stamps)
    launches = timeline(make, 4, [Work("a", 0, 1.0), Work("b", 0, 1.0), Work("c", 0, 0.001)])
    assert [one.begin for one in launches] == [0.001, 0.003, 0.008]


SOURCE = """
extern "C" __global__ void copy(const float* from, float* to)
{
    to[threadIdx.x] = from[threadIdx.x];
}
"""


def test_costs_are_bars_with_their_shares():
    result = [Work("a", 3e6, 1e-6), Work("b", 1e6, 3e-6)]
    ax = lesson_33.launches_costs(result)
    assert [bar.get_width() for bar in ax.patches] == [3, 1]
    assert [text.get_text() for text in ax.texts] == ["3 MB, 75.0%", "1 MB, 25.0%"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0 a", "1 b"]
    ax = lesson_33.launches_costs(result, timed=True)
    assert ax.texts[1].get_text() == "3.00 µs, 75.0%" and "events" in ax.get_xlabel()


def test_a_graph_has_a_row_for_each_level_and_an_arrow_for_each_array():
    a, b, c, d = (np.zeros(4, np.float32) for _ in range(4))
    kernels = Traced(SOURCE, traces := [])
    for pair in ((a, b), (b, c), (b, d), (c, a)):
        kernels.launch("copy", (1,), (4,), *pair)
    ax = lesson_33.needs(traces)
    assert len(ax.patches) == 3
    at = {text.get_text().split()[0]: text.get_position() for text in ax.texts}
    assert [at[n][1] for n in "0123"] == [0, 1, 1, 2] and at["1"][0] != at["2"][0]
    assert ax.texts[0].get_text() == "0 copy\nto 16 B" and ax.texts[3].get_text() == "3 copy"
