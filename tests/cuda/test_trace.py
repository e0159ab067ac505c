"""The trace: counts against hand counts, and planted faults, each found and named."""

import re

import numpy as np
import pytest

from cnnlab import check, cuda
from cnnlab.cuda.emulator.traced import Traced
from cnnlab.kernels import CONTRACT, device
from tests.cuda.examples import floats, kernel


def trace(source: str, *arguments, grid=(1,), block=(32,), shared=0, name="k"):
    kernels = Traced(source)
    kernels.launch(name, grid, block, *arguments, shared=shared)
    return kernels.trace


@pytest.mark.parametrize(
    "index, sectors",
    [
        ("i", 4),  # 32 neighbours of 4 bytes are 128 bytes
        ("i + 1", 5),  # the same, but across a border
        ("2 * i", 8),
        ("8 * i", 32),  # every thread has a sector for itself
        ("0", 1),
        ("31 - i", 4),  # the order within a warp does not matter
        ("i / 8", 1),
    ],
)
def test_sectors_of_a_warp(index, sectors):
    result = trace(kernel(f"int i = threadIdx.x; out[i] = a[{index}];"), floats(256), floats(32), 0)
    assert result.sectors("a").tolist() == [sectors]
    assert result.sectors("out", write=True).tolist() == [4]
    assert result.traffic()["a"] == {
        "reads": 32, "writes": 0, "bytes": 128, "requests": 1, "sectors": sectors,
        "requested": 32 * sectors,
    }  # fmt: skip
    assert result.requested() == 32 * (sectors + 4)


@pytest.mark.parametrize(
    "index, turns",
    [("i", 1), ("2 * i", 2), ("32 * i", 32), ("33 * i", 1), ("0", 1), ("i % 2 * 32", 2)],
)
def test_bank_conflicts_of_a_warp(index, turns):
    body = f"""extern __shared__ float tile[];
    for (int i = threadIdx.x; i < 1056; i += 32) tile[i] = a[i % n];
    __syncthreads();
    int i = threadIdx.x;
    out[i] = tile[{index}];"""
    result = trace(kernel(body), floats(32), floats(32), 32, shared=4 * 1056)
    assert result.conflicts("tile", write=False).tolist() == [turns]
    assert set(result.conflicts("tile", write=True)) == {1}
    assert not result.faults()


def test_requests_of_several_warps_blocks_and_turns():
    body = "for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + i] = a[i];"
    result = trace(kernel(body), floats(100), floats(300), 100, grid=(3,), block=(64,))
    sizes = sorted(len(rows) for rows in result.requests("a"))
    assert sizes == [4] * 3 + [32] * 9  # 100 elements: 64 in two warps, then 32 and 4
    rows = result.requests("a")[0]
    assert len(set(result.block[rows])) == 1 and np.ptp(result.thread[rows]) < 32
    with pytest.raises(ValueError, match="name: expected one of a, out, got 'b'"):
        result.sectors("b")


LOOPS = {  # one warp: how many requests for `a`, by hand
    "for (int k = i % 4; k < 4; k++) s += a[k];": 4,
    "for (int k = 0; k < 4; k++) if (k >= i % 4) s += a[k];": 4,
    "for (int f = 0; f < 3; f++) for (int k = 0; k <= i % 4; k++) s += a[4 * f + k];": 3 * 4,
    "for (int f = 0; f < 3; f++) { if (f == i % 3) continue; s += a[f]; }": 3,
    "for (int f = 0; f < 3; f++) { for (int k = 0; k < i % 4; k++) s += 1; s += a[f]; }": 3,
    "if (i < 9) for (;;) { s += a[i]; if (s >= 0) break; } else s += a[0];": 2,
    "int k = i % 4; do s += a[k]; while (++k < 4); s += a[9];": 4 + 1,
    "int k = i % 4; do { s += a[k]; } while (++k < 4);": 4,
    "int k = 0; while (k < 5) { k++; if (k == i % 5) continue; s += a[k]; }": 5,
    "for (int k = 0; k < 9; k++) { if (k > i % 4) break; s += a[k]; } s += a[20];": 4 + 1,
    "for (int f = 0; f < 3; f++) if (f != i % 3) s += look(a, f) + look(a, f + 1);": 3 * 2,
    "for (int f = 0; f < 2; f++) for (int k = 0; k < 3; k++) if (k != i % 3) s += look(a, k);": 6,
}


@pytest.mark.parametrize("body, requests", LOOPS.items())
def test_threads_of_a_warp_are_together_in_each_iteration(body, requests):
    """Threads that skip an iteration, or leave a loop early, wait for the others."""
    source = (
        "__device__ __noinline__ float look(const float* a, int i) { return a[i]; }\n"
        + kernel(f"int i = threadIdx.x; float s = 0; {body} out[i] = s;")
    )
    result = trace(source, floats(32), floats(32), 32)
    assert len(result.requests("a")) == requests
    assert [len(rows) for rows in result.requests("out")] == [32]


def test_loads_are_counted_by_line():
    body = "float x = a[threadIdx.x];\n\n\nx += a[0];\nout[threadIdx.x] = x + out[threadIdx.x];"
    result = trace(kernel(body), floats(32), floats(32), 0)
    assert [result.loads(range(n, n + 1)) for n in range(2, 9)] == [0, 0, 32, 0, 0, 32, 32]
    assert result.loads(range(1, 8)) == 64 and result.scale == 1


def test_the_report_in_words():
    text = str(trace(kernel("out[threadIdx.x] = a[threadIdx.x];"), floats(32), floats(32), 0))
    assert text.splitlines()[0] == "k: 64 accesses"
    assert text.splitlines()[2].split() == ["a", "32", "0", "1", "4.00", "–"]
    assert text.splitlines()[-1] == "no faults"


SUMS = """    __shared__ float sums[64];
    sums[threadIdx.x] = a[threadIdx.x];
    for (int half = 32; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[0] = sums[0];"""
STAGES = """    __shared__ float row[32];
    for (int first = 0; first < n; first += 32) {
        row[threadIdx.x] = a[first + threadIdx.x];
        __syncthreads();
        out[first + threadIdx.x] = row[31 - threadIdx.x];
        __syncthreads();
    }"""
WARP = """    __shared__ float row[32];
    row[threadIdx.x] = a[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = row[31 - threadIdx.x];"""
TRANSPOSED = """    int x = threadIdx.x, y = threadIdx.y;
    if (x < n && y < n) out[y * n + x] = a[x * n + y];"""
ADDS = "    atomicAdd(&out[threadIdx.x % 4], a[threadIdx.x]);"
GOOD = {
    "sums": (SUMS, (64, 64, 0), {"block": (64,)}),
    "stages": (STAGES, (64, 64, 64), {}),
    "warp": (WARP, (32, 32, 0), {}),
    "transposed": (TRANSPOSED, (9, 9, 3), {"block": (4, 4)}),
    "adds": (ADDS, (64, 4, 0), {"grid": (2,)}),
}
PLANTED = [
    # what is planted, in which, replaced text, new text, kind, words of the message
    ("missing barrier", "sums", "        __syncthreads();\n", "", "race",
     "thread 32 of block 0 writes it in line 5 with no barrier between"),
    ("missing second barrier", "stages", "31 - threadIdx.x];\n        __syncthreads();",
     "31 - threadIdx.x];", "race", r"line 6, and .* line 8 with no barrier between: row\["),
    ("off by one", "sums", "threadIdx.x + half", "threadIdx.x + half + 1", "out of bounds",
     r"thread 31 of block 0 reads sums\[64\], 1 after its last element \(1 access\)"),
    ("dropped guard", "transposed", "if (x < n && y < n) ", "", "out of bounds",
     r"thread \(3, 2, 0\) of block 0 writes out\[9\], 1 after its last"),
    ("swapped indices", "transposed", "out[y * n + x]", "out[x + x * n]", "race",
     r"writes it in line 5, and thread \(0, 1, 0\) of block 0 writes it"),
    ("before the first", "warp", "row[31 - threadIdx.x]", "row[30 - (int)threadIdx.x]",
     "out of bounds", r"thread 31 of block 0 reads row\[-1\], 1 before its first element"),
    ("read before write", "warp", "row[threadIdx.x] = a", "if (threadIdx.x) row[threadIdx.x] = a",
     "uninitialised read", r"thread 31 of block 0 reads row\[0\], which no thread has written"),
    ("an output that is not set first", "adds", "    atomicAdd", "    if (n == 0) atomicAdd",
     "uninitialised read", r"changes|reads out\[0\], which no thread"),
    ("not atomic", "adds", ADDS, "    out[threadIdx.x % 4] += a[threadIdx.x];", "race",
     r"block 0 .* block 1 .* no barrier between: out\["),
    ("a result beyond the last", "adds", ADDS, ADDS + "\n    if (n) out[5] = 0;", "out of bounds",
     r"writes out\[5\], 2 after"),
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_good_kernels_have_no_faults(name):
    body, (n_in, n_out, n), options = GOOD[name]
    assert trace(kernel(body), floats(n_in), floats(n_out), n, **options).faults() == []


@pytest.mark.parametrize("plant", PLANTED, ids=[plant[0] for plant in PLANTED])
def test_planted_faults_are_found_and_named(plant):
    what, name, old, new, kind, words = plant
    body, (n_in, n_out, n), options = GOOD[name]
    assert body.count(old) == 1
    out = floats(n_out)
    if what == "an output that is not set first":
        out[:] = np.nan
    if what == "a result beyond the last":
        n = 1
    result = trace(kernel(body.replace(old, new)), floats(n_in), out, n, **options).faults()
    assert kind in {fault.kind for fault in result}, result
    named = [str(fault) for fault in result if fault.kind == kind]
    assert any(re.search(words, text) for text in named), named


BETWEEN_WARPS = """    out[threadIdx.x] = 1;
    if (n) __syncthreads(); else __syncwarp();
    out[63 - threadIdx.x] += 1;"""
HALVES = """    __shared__ float row[32];
    unsigned t = threadIdx.x, half = t < 16 ? 0xffff : 0xffff0000;
    row[t] = a[t];
    {between}
    out[t] = row[{other}];"""
CHAIN = "if (t < 16) __syncwarp(0xffff); if (t >= 8 && t < 24) __syncwarp(0xffff00);"


@pytest.mark.parametrize(
    "between, other, racing",
    [
        ("__syncwarp(half);", "t ^ 15", None),
        ("__syncwarp(half);", "31 - t", "thread"),
        ("if (t < 16) __syncwarp(0xffff);", "t < 16 ? t + 16 : t", "thread 16"),
        ("if (t >= 16) __syncwarp(half);", "t < 16 ? t : t - 16", "thread 0"),
        (CHAIN, "t >= 16 && t < 24 ? t - 16 : t", None),
        (CHAIN, "t == 24 ? 0 : t", "thread 0"),
        (CHAIN, "t == 0 ? 16 : t", "thread 16"),  # the chain leads one way only
        ("__syncwarp(half); if (t < 16) __syncwarp(half); __syncwarp();", "31 - t", None),
        ("if (t < 16) __syncwarp(0xffff); __syncwarp();", "31 - t", None),
    ],
)  # fmt: skip
def test_a_barrier_of_some_lanes_orders_these_lanes(between, other, racing):
    source = HALVES.replace("{between}", between).replace("{other}", other)
    result = trace(kernel(source), floats(32), floats(32), 0).faults()
    assert {fault.kind for fault in result} == ({"race"} if racing else set())
    assert not racing or any(racing in fault.text and "row[" in fault.text for fault in result)


LEFT_BY_ANOTHER = """    __shared__ float row[32];
    if (blockIdx.x == n) row[threadIdx.x] = 1;
    out[blockIdx.x * 32 + threadIdx.x] = row[threadIdx.x];"""


def test_a_warps_barrier_does_not_part_warps_in_global_memory():
    assert not trace(kernel(BETWEEN_WARPS), floats(1), floats(64), 1, block=(64,)).faults()
    result = trace(kernel(BETWEEN_WARPS), floats(1), floats(64), 0, block=(64,)).faults()
    assert {fault.kind for fault in result} == {"race"}
    assert any("line 4, and" in fault.text and "out[" in fault.text for fault in result)


def test_what_another_block_left_in_shared_memory_is_not_there():
    result = trace(kernel(LEFT_BY_ANOTHER), floats(1), floats(64), 0, grid=(2,)).faults()
    assert [fault.kind for fault in result] == ["uninitialised read"]
    assert (
        "thread 0 of block 1 reads row[0]" in result[0].text and "(32 accesses)" in result[0].text
    )


@pytest.mark.parametrize("add, lost", [("out[0] += a[0]", True), ("atomicAdd(out, a[0])", False)])
def test_a_shuffled_schedule_loses_what_is_not_atomic(add, lost):
    """Additions of 2 warps in each of 3 blocks: without atomics one of a warp's 32 is left."""
    source, sums = kernel(f"    for (int i = 0; i < n; i++) {add};"), []
    for schedule in (0, 1, 2, 1):
        kernels, out = Traced(source, schedule=schedule), np.zeros(1, np.float32)
        kernels.launch("k", (3,), (64,), np.ones(1, np.float32), out, 5)
        assert bool(kernels.trace.faults()) == lost
        sums.append(out[0])
    assert sums[0] == 3 * 64 * 5 and sums[1] == sums[3]
    assert all((each <= 3 * 2 * 5) == lost for each in sums[1:])


def test_a_shuffled_schedule_keeps_barriers_and_takes_blocks_in_any_order():
    dz, orders = floats(24).reshape(2, 3, 2, 2), set()
    for schedule in range(1, 9):
        db = np.full(3, np.nan, np.float32)
        with cuda.traced(schedule=schedule) as traces:
            device.conv_backward_bias(dz, db)
        assert np.array_equal(db, dz.sum((0, 2, 3))) and not traces[0].faults()
        orders.add(tuple(dict.fromkeys(traces[0].block.tolist())))
    assert len(orders) > 1 and all(sorted(order) == [0, 1, 2] for order in orders)


@pytest.mark.parametrize("operation", CONTRACT)
def test_the_courses_kernels_are_right_and_have_no_faults(operation):
    assert check.kernel(operation, getattr(device, operation))
