import io

import matplotlib.pyplot as plt
import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.lessons import lesson_31
from cnnlab.measure.timing import Timing
from cnnlab.plots import pictures
from cnnlab.plots.pictures import accesses
from cnnlab.ranks.schedules import ring, tree

SOURCE = """
extern "C" __global__ void k(const float* a, float* out, int by)
{
    __shared__ float sums[32];
    sums[threadIdx.x] = a[threadIdx.x * by];
    __syncthreads();
    out[threadIdx.x] = sums[31 - threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def traces():
    kernels, a, out = cuda.Kernels(SOURCE), np.zeros(64, np.float32), np.zeros(32, np.float32)
    with cuda.traced() as result:
        for by in (1, 2):
            kernels.launch("k", (1,), (32,), a, out, by)
    return dict(zip(("neighbours", "every other"), result, strict=True))


def saved(axes) -> int:
    file = io.BytesIO()
    np.ravel(axes)[0].figure.savefig(file)
    return len(file.getvalue())


def test_rounds_have_a_frame_for_each_barrier_and_count_accesses(traces):
    html = lesson_31.rounds(traces["neighbours"], "sums").html
    assert html.count("<img") == 2 and "Each stores a partial sum. Shared accesses: 32;" in html
    assert "Round 1: in the tree 32 of 32 threads add a partial sum. Shared accesses: 64;" in html


def test_every_schedule_has_a_panel():
    axes = pictures.schedules({"ring": ring, "tree": tree}, 4, 8)
    assert [ax.get_title().split(":")[0].split(",")[0] for ax in np.ravel(axes)] == ["ring", "tree"]


def test_times_by_size_needs_only_timings():
    timings = {"ring": [Timing("ring", (1e-5, 2e-5)), Timing("ring", (1e-3, 2e-3))]}
    ax = pictures.times_by_size([10, 1000], timings)
    assert saved(ax) > 2000
    ax = pictures.times_by_size([10, 1000], timings, {"bound": lambda n: 1e-6 * n})
    x, y = ax.lines[0].get_data()
    np.testing.assert_allclose(y, 1e-6 * x)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["10", "1,000"]
    assert len(x) > 50 and x[0] == 10 and ax.yaxis.get_major_formatter()(1e-5) == "10 µs"


BANKS = """
extern "C" __global__ void k(const float* a, float* out, int n, int by)
{
    __shared__ float tile[1024];
    tile[threadIdx.x * by] = a[threadIdx.x];
    if (threadIdx.x < n) out[threadIdx.x] = tile[threadIdx.x * by];
}
"""


def trace(n=20, by=1):
    a, out = np.zeros(32, np.float32), np.zeros(20, np.float32)
    return cuda.trace_of(BANKS, "k", (1,), (32,), a, out, n, by)


def test_each_array_has_a_panel_with_reads_and_writes():
    [row] = accesses([trace()])
    titles = [ax.get_title() for ax in row]
    assert titles == ["a: 32 elements", "out: 20 elements", "tile, shared: 1,024 elements"]
    assert row[0].figure.get_suptitle() == "104 accesses, none at fault"
    reads, writes, outside = (points.get_offsets() for points in row[1].collections)
    assert (len(reads), len(writes), len(outside)) == (0, 20, 0)


def test_accesses_outside_are_crosses_and_named():
    [row] = accesses([trace(n=32)])
    assert row[0].figure.get_suptitle() == "128 accesses, at fault: out of bounds (12 of them)"
    *_, outside = (points.get_offsets() for points in row[1].collections)
    assert [tuple(place) for place in outside] == [(i, i) for i in range(20, 32)]


def test_nothing_is_drawn_without_an_access(capsys):
    assert accesses([]) is None
    assert "No access yet" in capsys.readouterr().out and plt.get_fignums() == []


@pytest.mark.parametrize("by, turns", [(1, 1), (2, 2), (32, 32)])
def test_banks_has_a_row_for_each_turn(by, turns):
    ax = lesson_31.banks(trace(n=0, by=by), "tile", write=True)
    assert len(ax.get_yticks()) == turns
    assert len(ax.patches) == 32 and len({round(p.get_y(), 2) for p in ax.patches}) == turns
