"""Distinct sectors and DRAM bytes, against counts by hand: 32 floats are 4 sectors of 32 bytes."""

import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.cuda.emulator.cache import distinct, dram
from cnnlab.cuda.emulator.traced import Traced

SECTOR, MANY = 32, 1 << 20
HEAD = 'extern "C" __global__ void k(const float* a, float* out) {{ {} }}'
PLACE = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
WALK = """
extern "C" __global__ void walk(float* a, int n, int write)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (write) a[i % n] = 1;
    else if (a[i % n] < 0) a[0] = 0;
}
"""
ROWS = """
struct Row { float of_two_sectors[16]; };
extern "C" __global__ void k(const float* a, float* out)
{
    ((Row*)out)[threadIdx.x] = ((const Row*)a)[threadIdx.x];
}
"""


def floats(n):
    return np.zeros(n, np.float32)


def sectors(result):
    return [tuple(row) for row in (result // SECTOR).tolist()]


def walked(*passes, n=1024):
    """The traces of launches of 8 blocks of 128 threads, each over 1024 floats: 128 sectors."""
    kernels, a = Traced(WALK), floats(max(n, 1024))
    for write in passes:
        kernels.launch("walk", (8,), (128,), a, n, write)
    return kernels.traces


@pytest.mark.parametrize(
    "index, requested, touched",
    [
        ("i", 4, 4),  # neighbours
        ("8 * i", 32, 32),  # each thread in a sector of its own
        ("i % 8", 1, 1),
    ],
)
def test_coalesced_and_strided_reads(index, requested, touched):
    """Each of 4 blocks, a warp, reads the same sectors: requested by each, distinct once."""
    source = HEAD.format(f"int i = threadIdx.x; out[i + 32 * blockIdx.x] = a[{index}];")
    kernels = Traced(source)
    kernels.launch("k", (4,), (32,), floats(256), floats(128))
    assert kernels.trace.requested() == SECTOR * 4 * (requested + 4)
    assert distinct(kernels.traces) == SECTOR * (touched + 4 * 4)
    assert sectors(dram(kernels.traces, MANY)) == [(touched, 16)]


def test_a_working_set_that_fits_is_fetched_once_and_one_that_does_not_each_time():
    """128 sectors, three times in the same order: with room for 127, each comes too late."""
    traces = walked(0, 0, 0)
    assert distinct(traces) == 128 * SECTOR and [distinct([t]) for t in traces] == [4096] * 3
    assert sectors(dram(traces, 128 * SECTOR)) == [(128, 0), (0, 0), (0, 0)]
    assert sectors(dram(traces, 127 * SECTOR)) == [(128, 0), (128, 0), (128, 0)]


def test_of_those_used_again_the_ones_used_least_recently_go():
    """Sectors 0 1 0 2 0 1: with room for two, 2 drives out 1, and 0 stays throughout."""
    kernels, a = Traced(HEAD.format("if (a[8 * (int)out[0]] < 0) out[0] = 0;")), floats(24)
    traces = []
    for place in (0, 1, 0, 2, 0, 1):
        kernels.launch("k", (1,), (1,), a, np.full(8, place, np.float32))
        traces.append(kernels.trace)
        mine = kernels.trace.arrays[0].start // SECTOR + np.arange(3)
        kernels.trace.touched = traces[-1].touched[np.isin(traces[-1].touched[:, 0], mine)]
    assert [read for read, _ in sectors(dram(traces, 2 * SECTOR))] == [1, 1, 0, 1, 0, 1]


def test_a_block_written_and_read_again():
    """A write fetches nothing; what was written goes back once, when driven out or at the end."""
    assert sectors(dram(walked(1, 0), MANY)) == [(0, 128), (0, 0)]
    assert sectors(dram(walked(1, 0), 64 * SECTOR)) == [(0, 128), (128, 0)]
    assert sectors(dram(walked(1, 1), MANY)) == [(0, 0), (0, 128)]  # overwritten in the L2
    assert sectors(dram(walked(1, 1), 64 * SECTOR)) == [(0, 128), (0, 128)]
    assert sectors(dram(walked(0, 1), MANY)) == [(128, 0), (0, 128)]


def test_reading_before_writing_fetches_be_it_in_one_atomic_addition():
    for body in ("out[i] += 1;", "atomicAdd(&out[i], 1.0f);"):
        kernels = Traced(HEAD.format(PLACE + body))
        kernels.launch("k", (1,), (32,), floats(8), floats(32))
        assert sectors(dram(kernels.traces, MANY)) == [(4, 4)], body
    kernels = Traced(HEAD.format(PLACE + "out[i] = 1; out[i] += 1;"))
    kernels.launch("k", (1,), (32,), floats(8), floats(32))
    assert sectors(dram(kernels.traces, MANY)) == [(0, 4)]


def test_a_struct_is_in_each_of_its_sectors():
    kernels = Traced(ROWS)
    kernels.launch("k", (1,), (2,), floats(32), floats(32))
    assert len(kernels.trace) == 4 and distinct(kernels.traces) == 8 * SECTOR
    assert sectors(dram(kernels.traces, MANY)) == [(4, 4)]


def test_vectors_are_in_their_sectors_and_shared_memory_in_none():
    source = """extern "C" __global__ void k(const float4* a, float* out)
    {
        __shared__ float row[32];
        float4 four = a[threadIdx.x];
        row[threadIdx.x] = four.x + four.w;
        if (row[threadIdx.x] < 0) out[0] = 1;
    }"""
    kernels = Traced(source)
    kernels.launch("k", (1,), (32,), floats(128), floats(8))
    assert distinct(kernels.traces) == 16 * SECTOR


def test_views_of_an_array_are_that_array_in_the_next_launch():
    kernels, a = Traced(HEAD.format(PLACE + "out[i] = a[i];")), floats(96)
    kernels.launch("k", (1,), (32,), a[:32], a[32:64])
    kernels.launch("k", (1,), (32,), a[32:64], a[64:])
    assert distinct(kernels.traces) == 12 * SECTOR
    assert sectors(dram(kernels.traces, MANY)) == [(4, 4), (0, 4)]


def test_neighbouring_views_share_the_sector_that_both_lie_in():
    """600 and 24 bytes of one array, as the filters and biases: sectors 0 to 18, and 18 to 19."""
    kernels, flat = Traced(HEAD.format("int i = threadIdx.x; out[i % 6] = a[i];")), floats(156)
    kernels.launch("k", (1,), (150,), flat[:150], flat[150:])
    assert distinct(kernels.traces) == 20 * SECTOR
    assert sectors(dram(kernels.traces, MANY)) == [(18, 2)]  # the shared one was written first


def test_sectors_are_those_of_all_blocks_whatever_is_sampled():
    """The same from whole traces, from samples, and where nothing but sectors is noted."""
    results = []
    for most in (None, 5_000, 0):
        a, out = floats(1 << 14), floats(1 << 14)
        with cuda.traced(most) as traces:
            kernels = cuda.Kernels(HEAD.format(PLACE + "out[i] = a[i];"))
            kernels.launch("k", (64,), (256,), a, out)
        [trace] = traces
        assert (trace.sampled is None) == (most is None) and (len(trace) == 0) == (most == 0)
        results.append((distinct(traces) // SECTOR, sectors(dram(traces, 1000 * SECTOR))))
    assert results == [(4096, [(2048, 2048)])] * 3


def test_a_launch_that_touches_nothing_moves_nothing():
    kernels = Traced('extern "C" __global__ void k(int n) { }')
    kernels.launch("k", (1,), (32,), 1)
    assert distinct(kernels.traces) == 0 and sectors(dram(kernels.traces, MANY)) == [(0, 0)]
