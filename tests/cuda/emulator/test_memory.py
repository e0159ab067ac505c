"""Faults of the processor, Ctrl-C, and what a trace takes: none of them ends the process."""

import os
import resource
import signal
import threading
import time

import numpy as np
import pytest

from cnnlab.cuda.emulator import Emulated
from cnnlab.cuda.emulator.memory import Arena
from cnnlab.cuda.emulator.traced import Traced

DEEP = """__device__ __noinline__ int deep(int n)
{
    volatile int here = n;
    return n ? deep(n + 1) + here : 0;
}"""
COPY = "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) out[i] = a[i];"


def kernel(body: str, before: str = "") -> str:
    head = 'extern "C" __global__ void k(const float* a, float* out, int n)'
    return f"{before}\n{head}\n{{\n{body}\n}}\n"


def floats(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.float32)


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
    assert abs(result.moved() / (8 * n) - 1) < 0.01
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


def test_a_few_blocks_are_all_traced():
    kernels, out = Traced(kernel(COPY)), np.zeros(3200, np.float32)
    kernels.launch("k", (100,), (32,), floats(3200), out, 3200)
    assert kernels.trace.sampled is None and len(kernels.trace) == 6400
    assert "sample" not in str(kernels.trace)


def test_copies_lie_far_apart_and_come_back_where_they_may():
    a, b = floats(8), floats(4)
    arena = Arena([a, b, a[2:4]])
    arena.fill()
    places = [copy.ctypes.data for copy in arena.copies]
    assert abs(places[0] - places[1]) > 2**33 and places[2] - places[0] == 8
    for copy in arena.copies:
        copy += 1
    arena.give_back([False, True, False])
    assert a.tolist() == [1, 2, 4, 5, 5, 6, 7, 8] and b.tolist() == [0, 1, 2, 3]
