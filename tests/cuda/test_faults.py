"""Faults that are no access to an argument: local arrays, warps, globals, const."""

import os
import re
import resource
import signal
import threading
import time

import numpy as np
import pytest

from cnnlab.cuda.emulator import Emulated
from cnnlab.cuda.emulator.traced import Traced
from tests.cuda.examples import floats, kernel


def faults(body: str, n: int = 0, before: str = "", size: int = 32) -> list[str]:
    kernels = Traced(kernel(body, before))
    kernels.launch("k", (1,), (32,), floats(size), np.zeros(size, np.float32), n)
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
        ("    out[threadIdx.x + n] = 1;", 10**8, "", "line 4: thread 0 .* no array"),
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
        ("    if (threadIdx.x < 7)\n        __syncthreads();\n    else\n        __syncwarp();",
         r"\(0, 0, 0\) waits at a barrier in line 5 that thread \(7, 0, 0\) does not reach"),
        ("    if (threadIdx.x >= 3) return;\n    out[0] = 1;\n    __syncthreads();",
         r"\(0, 0, 0\) waits at a barrier in line 6 .*\(3, 0, 0\) never reaches: it has"),
        ("    float v = a[0];\n    if (threadIdx.x < 16) v += __shfl_xor_sync(0xffffffff, v, 8);\n"
         "    out[threadIdx.x] = v;",
         r"line 5: .* but thread \(16, 0, 0\), which its mask names, never gets there"),
        ("    float v = a[0];\n    if (threadIdx.x >= 16) return;\n"
         "    out[threadIdx.x] = __shfl_down_sync(0xffffffff, v, 8);",
         r"line 6: .* takes the value of thread \(16, 0, 0\), which has returned"),
        ("    out[0] = __shfl_sync(0xfffe, a[0], 1);",
         r"line 4: thread \(0, 0, 0\) is not in its own mask, 0x0000fffe"),
        ("    float4 v = *(const float4*)(a + 1);\n    out[0] = v.x;",
         r"line 4: thread \(0, 0, 0\) .*misaligned address: 'const struct float4' must lie"),
        ("    atomicAdd((int*)((char*)out + 2), 1);", r"line 4: thread \(0, .* misaligned address"),
        ("    out[0] = (int)(n + 3e9f);", "line 4: .* a float that is NaN or outside of 'int'"),
        ("    out[0] = 1 << (n + 32);", "line 4: .* 'int' is shifted by less than 0 or by all"),
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


DEEP = """__device__ __noinline__ int deep(int n)
{
    volatile int here = n;
    return n ? deep(n + 1) + here : 0;
}"""
COPY = "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) out[i] = a[i];"


LAST = """    __shared__ bool last;
    if (threadIdx.x == 0) {
        out[blockIdx.x + 1] = a[blockIdx.x];
        FENCE
        last = atomicInc(&count, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        for (int b = 0; b < gridDim.x; b++) out[0] += out[b + 1];"""
ADD = """    unsigned* p = (unsigned*)out;
    unsigned old = *p, seen;
    do old = atomicCAS(p, seen = old, __float_as_uint(1 + __uint_as_float(old)));
    while (seen != old);"""
MAXIMUM = """    int* p = (int*)out;
    float v = 32.0f - threadIdx.x;
    int old = *p, seen = -1;
    while (v > __int_as_float(old) && old != seen)
        old = atomicCAS(p, seen = old, __float_as_int(v));"""
TWO = """    __shared__ bool last;
    if (threadIdx.x < 2) out[2 * blockIdx.x + threadIdx.x] = a[0];
    __syncthreads();
    if (threadIdx.x == 0) { __threadfence(); last = atomicAdd(&count, 1u) == 2; }
    __syncthreads();
    if (last && threadIdx.x == 0) out[6] = out[1];"""
MIXED = """    int* p = (int*)out;
    if (threadIdx.x == 0) { out[2] = p[0]; atomicAdd(p, 1); }
    if (threadIdx.x == 9) out[1] = p[0];"""


@pytest.mark.parametrize(
    "body, words",
    [
        (LAST.replace("FENCE", "__threadfence();"), ""),
        (LAST.replace("FENCE", "__threadfence();").replace("+ 1];", "+ 1], count = 0;"), ""),
        (LAST.replace("FENCE", ""), r"race, line 12: .* block 0 writes it in line 6"),
        ("__threadfence();\n" + LAST.replace("FENCE", ""), "race, line 13"),
        (TWO, ""),
        (TWO.replace("__syncthreads();", "", 1), "race, line 9: thread 1 .* writes it in line 5"),
        (ADD, ""),
        (MAXIMUM, ""),
        (MAXIMUM.replace("while", "if"), "race, line 6"),
        ("    int* p = (int*)out;\n    atomicExch(p, *p + 1);", "race, line 5"),
        (MIXED, "race, line 6: thread 0 of block 0 changes atomically it in line 5"),
        ("    out[0] = 1;\n    out[1] = __ldg(out);", "race, line 5: .* by __ldg, and the kernel"),
    ],
)
def test_atomics_order_what_they_do_order(body, words):
    kernels = Traced(kernel(body, "__device__ unsigned count = 0;"))
    kernels.launch("k", (3,), (32,), np.ones(4, np.float32), np.zeros(8, np.float32), 0)
    result = "\n".join(map(str, kernels.trace.faults()))
    assert re.search(words, result) if words else not result


@pytest.mark.parametrize(
    "value, before, words",
    [
        ("0; float own[n]", "", "variable length array"),
        ("f(a[0])", "float f(float x) { return x; }", "function, got f: line 4: out"),
        ("f<float>(a[0])", "template <class T> T f(T x) { return x; }", "got f: line 4"),
        ("u::f(1)", "namespace u { auto f(float x, int y = 2) -> float { return x; } }", "got f: "),
        ("1; q(out)", "__global__ void q(float* x) {}", "got q: line 4"),
        ("rand()", "", "function, got rand: line 4"),
    ],
)
def test_what_no_gpu_compiles_is_refused(value, before, words):
    with pytest.raises((RuntimeError, ValueError), match=words):
        Emulated(kernel(f"    out[0] = {value};", before))


@pytest.mark.parametrize("device", [Emulated, Traced])
@pytest.mark.parametrize(
    "body, before, words",
    [
        ("    out[0] = 7 /\n        n;", "", r"line [45]: thread \(0, 0, 0\) of block .* divides"),
        ("    out[0] = 7 % n;", "", "line 4: .* divides an integer by zero"),
        ("    out[0] = deep(1);", DEEP, r"line \d: .* has no stack left: .* calls go too deep"),
        ("    float own[200000];\n    for (int i = 0; i < 200000; i++) own[i] = a[i % 32];\n"
         "    out[0] = own[n + 1];", "", r"line \d: .* has no stack left: its local arrays are"),
        ("    out[0] = *(const volatile float*)8;", "", "line 4: .* no array"),
        ("    float own[4];\n    for (int i = 0; i < 4; i++) own[i] = a[i];\n"
         "    own[n + 1000000000] = 1;\n    out[0] = own[n];", "", "line 6: .*"),
    ],
)  # fmt: skip
def test_a_fault_of_the_processor_is_a_message(device, body, before, words):
    kernels, out = device(kernel(body, before)), floats(32)
    with pytest.raises(RuntimeError, match=f"k: .*{words}"):
        kernels.launch("k", (1,), (32,), floats(32), out, 0)
    assert np.array_equal(out, floats(32))


def test_a_local_array_may_take_what_a_gpu_gives_it():
    body = "float own[120000];\nfor (int i = 0; i < 120000; i++) own[i] = a[i % 32];\n"
    out = floats(32)
    source = kernel(body + "__syncthreads();\nout[threadIdx.x] = own[n + threadIdx.x];")
    Emulated(source).launch("k", (1,), (32,), floats(32), out, 1)
    assert out.tolist() == [*range(1, 32), 0]


@pytest.mark.parametrize("device", [Emulated, Traced])
@pytest.mark.parametrize(
    "body",
    [
        "    volatile int on = n;\n    while (on) {}",
        "    while (n) __syncthreads();",
        "    int on = n;\n    while (on) on = __shfl_sync(0xffffffff, on, 0);",
        '    while (n) printf("");',
    ],
)
def test_an_endless_loop_can_be_interrupted(device, body):
    kernels, out = device(kernel(body)), floats(32)
    ended = threading.Event()

    def interrupt():  # again, as the first may come before the loop, where Python can ignore it
        for patience in (0.3, 5, 5, 5):
            if not ended.wait(patience):
                os.kill(os.getpid(), signal.SIGINT)

    presses = threading.Thread(target=interrupt)
    presses.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        kernels.launch("k", (1,), (32,), floats(32), out, 1)
    ended.set()
    presses.join()
    assert time.perf_counter() - start < 20
    kernels.launch("k", (1,), (32,), floats(32), out, 0)  # and the next launch is well


def test_signals_are_handled_as_before_after_a_launch():
    numbers = [signal.SIGINT, signal.SIGSEGV, signal.SIGFPE]
    before = [signal.getsignal(number) for number in numbers]
    Emulated(kernel(COPY)).launch("k", (1,), (32,), floats(32), floats(32), 32)
    assert [signal.getsignal(number) for number in numbers] == before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_an_endless_loop_fills_no_more_memory_than_a_trace_may_take():
    kernels = Traced(kernel("    while (n) out[threadIdx.x] += a[0];"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(
        RuntimeError, match="expected at most 4,000,000 accesses to trace, got more"
    ):
        kernels.launch("k", (1,), (32,), floats(32), floats(32), 1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes


def test_of_many_blocks_a_sample_is_traced_and_the_report_says_so(monkeypatch):
    monkeypatch.setattr("cnnlab.cuda.emulator.traced.MOST", 40_000)
    n_blocks = 5_000
    n = 32 * n_blocks - 5
    kernels, out = Traced(kernel(COPY)), np.zeros(n, np.float32)
    kernels.launch("k", (n_blocks,), (32,), floats(n), out, n)
    assert np.array_equal(out, floats(n))  # all blocks have run
    result = kernels.trace
    traced, blocks = result.sampled
    assert blocks == n_blocks and traced == len(set(result.block)) and {0, 1} <= set(result.block)
    assert len(result) < 11_000 and not result.faults()
    assert f"{len(result):,} accesses in a sample of {traced:,} of 5,000 blocks" in str(result)
    assert abs(result.requested() / (8 * n) - 1) < 0.01
    unguarded = Traced(kernel(COPY.replace("if (i < n) ", "")))
    unguarded.launch("k", (n_blocks,), (32,), floats(n), out, n)
    faults = unguarded.trace.faults()
    assert {fault.kind for fault in faults} == {"out of bounds"}
    assert all("of block 4999" in fault.text for fault in faults)
    traced, blocks = unguarded.trace.sampled
    assert f"(5 accesses in the {traced} of 5,000 blocks that were traced)" in faults[0].text


def test_blocks_for_which_there_is_no_room_are_left_out():
    body = "    for (int i = 0; i < (blockIdx.x ? n : 1); i++) out[blockIdx.x] += a[0];"
    kernels, out = Traced(kernel(body)), np.zeros(4, np.float32)
    kernels.launch("k", (4,), (1,), np.ones(1, np.float32), out, 1_000_000)
    assert out.tolist() == [1, 1e6, 1e6, 1e6]
    assert kernels.trace.sampled == (2, 4) and set(kernels.trace.block) == {0, 1}
