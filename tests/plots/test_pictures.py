import matplotlib.pyplot as plt
import numpy as np

from cnnlab import cuda
from cnnlab.plots.pictures import accesses

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
