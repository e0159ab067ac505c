"""Faults that are no access to an argument: local arrays, warps, globals, const."""

import re

import numpy as np
import pytest

from cnnlab.cuda.emulator import Emulated
from cnnlab.cuda.emulator.traced import Traced


def kernel(body: str, before: str = "") -> str:
    head = 'extern "C" __global__ void k(const float* a, float* out, int n)'
    return f"{before}\n{head}\n{{\n{body}\n}}\n"


def faults(body: str, n: int = 0, before: str = "", size: int = 32) -> list[str]:
    kernels, a = Traced(kernel(body, before)), np.arange(size, dtype=np.float32)
    kernels.launch("k", (1,), (32,), a, np.zeros(size, np.float32), n)
    return [str(fault) for fault in kernels.trace.faults()]


LOCAL = """    float own[4];
    for (int i = 0; i < 4 + n; i++) own[i] = a[i];
    out[threadIdx.x] = own[threadIdx.x % 4];"""
TABLE = "    out[threadIdx.x] = table[threadIdx.x % 4] + other;"
SUM = "    float sum;\n    for (int i = 0; i < n; i++) sum += a[i];\n    out[threadIdx.x] = sum;"
SET = "    float s;\n    if (n > 5) s = 1;\n    out[threadIdx.x] = s;"  # GCC is sure that it is 1
BEST = """    float best;
    int found = 0;
    for (int i = threadIdx.x; i < n; i++)
        if (a[i] > 0) {
            if (!found || a[i] > best) best = a[i];
            found = 1;
        }
    if (found) out[threadIdx.x] = best;"""
ROW = "    __shared__ float row[32];\n    row[threadIdx.x] = a[threadIdx.x];\n"
PASSED = ROW + "    {between};\n    out[threadIdx.x] = row[31 - threadIdx.x];"
VECTORS = "    ((float4*)out)[threadIdx.x] = ((const float4*)a)[threadIdx.x];"


@pytest.mark.parametrize(
    "body, n, before, size",
    [
        (LOCAL, 0, "", 32),
        (TABLE, 0, "__device__ float table[4] = {1, 2, 3, 4}; __device__ float other = 1;", 32),
        (BEST, 4, "", 32),  # which a compiler suspects
        (SET, 6, "", 32),
        (PASSED.format(between="__syncwarp()"), 0, "", 32),
        (VECTORS, 0, "", 128),
    ],
)
def test_good_kernels_have_no_faults(body, n, before, size):
    assert faults(body, n, before, size) == []


@pytest.mark.parametrize(
    "body, n, before, words",
    [
        (LOCAL, 1, "", r"bounds, line 5: .* takes element 4 of an array of 4 \(32 accesses\)"),
        (SUM, 4, "", r"uninitialised read, line [56]: 'sum' may be used uninit.*results differ"),
        (SUM, 0, "", r"uninitialised read, line [56]: 'sum'"),
        (SET, 3, "", r"uninitialised read, line 4: 's' is declared without a value, and results d"),
        ("    ((float*)a)[threadIdx.x] = 1;", 0, "",
         r"write to const, line 4: thread 0 of block 0 writes a\[0\], a const argument"),
        (PASSED.format(between="float v = __shfl_sync(0xffffffff, a[0], 0)"), 0, "",
         r"race, line 7: .* writes it in line 5, .* with no barrier between: row\["),
        (VECTORS, 0, "", r"out of bounds, line 4: thread 8 of block 0 writes out\[32\]"),
    ],
)  # fmt: skip
def test_planted_faults_are_named(body, n, before, words):
    result = faults(body, n, before)
    assert any(re.search(words, fault) for fault in result), result


@pytest.mark.parametrize(
    "body, n, before, words",
    [
        ("    out[0] = a[n];", 40_000, "", r"line 4: .* reads a\[40000\], 39969 after its last"),
        ("    out[0] = a[n];", -(2**31), "", r"reads a\[-2147483648\]"),
        (LOCAL, 10_000_000, "", r"line 5: .* takes element \d+ of an array of 4"),
        ("    out[0] = (&table[0])[n];", 5, "__device__ float table[4];", r"reads table\[5\], 2 "),
    ],
)
def test_accesses_far_outside_stop_the_kernel(body, n, before, words):
    with pytest.raises(RuntimeError, match="k: out of bounds, " + ".*" + words):
        faults(body, n, before, size=32)


@pytest.mark.parametrize("device", [Emulated, Traced])
@pytest.mark.parametrize(
    "body, words",
    [
        ("    if (threadIdx.x < 7)\n        __syncthreads();\n    else\n        __syncthreads();",
         r"thread \(0, 0, 0\) waits at a barrier in line 5 that thread \(7, 0, 0\) does not "
         "reach: it waits at another, in line 7"),
        ("    float v = a[0];\n    if (threadIdx.x < 16) v += __shfl_xor_sync(0xffffffff, v, 8);\n"
         "    out[threadIdx.x] = v;",
         r"line 5: .* but thread \(16, 0, 0\), which its mask names, never gets there"),
        ("    float v = a[0];\n    if (threadIdx.x >= 16) return;\n"
         "    out[threadIdx.x] = __shfl_down_sync(0xffffffff, v, 8);",
         r"line 6: .* takes the value of thread \(16, 0, 0\), which has returned"),
        ("    out[0] = __shfl_sync(0xfffe, a[0], 1);",
         r"line 4: thread \(0, 0, 0\) is not in its own mask, 0x0000fffe"),
        ("    __shared__ float big[20000];\n    big[threadIdx.x] = 1;",
         "expected at most 49152 bytes of shared memory in a block, got 80000 with big"),
    ],
)  # fmt: skip
def test_what_hangs_or_is_undefined_on_a_gpu_stops_the_kernel(device, body, words):
    a, out = np.zeros((2, 32), np.float32)
    with pytest.raises(RuntimeError, match=words):
        device(kernel(body)).launch("k", (1,), (32,), a, out, 0)


def test_all_reads_before_the_first_write_are_counted():
    body = """    __shared__ float row[32];
    for (int i = 0; i < 3; i++) out[threadIdx.x] += row[threadIdx.x];
    row[threadIdx.x] = a[0];
    out[threadIdx.x] += row[threadIdx.x];"""
    [fault] = faults(body)
    assert "uninitialised read" in fault and "(96 accesses)" in fault


def test_arguments_that_overlap_are_one_array():
    kernels, a = Traced(kernel("    out[threadIdx.x] = a[threadIdx.x];")), np.zeros(33, np.float32)
    kernels.launch("k", (1,), (32,), a[:32], a[1:], 0)
    result = kernels.trace
    assert [fault.kind for fault in result.faults()] == ["race"]
    assert "a/out[" in str(result.faults()[0]) and list(result.traffic()) == ["a/out"]
    assert result.sectors("a").tolist() == result.sectors("out").tolist()
