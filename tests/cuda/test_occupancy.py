import math
import subprocess
import sys

import numpy as np
import pytest

from cnnlab.cuda import occupancy, step
from cnnlab.cuda.launcher import Launcher
from cnnlab.cuda.occupancy import ARCHITECTURES, THREADS, compiled
from cnnlab.cuda.occupancy import occupancy as share
from cnnlab.kernels import device
from cnnlab.measure.bench import layer_arguments
from cnnlab.network import Network

T4, A100 = "sm_75", "sm_80"
LOCAL = """
extern "C" __global__ void indexed(float* out, int n)
{
    __shared__ float row[100];
    float mine[64];
    for (int i = 0; i < 64; i++) mine[i] = i;
    for (int i = 0; i < n; i++) mine[(int)out[i]] += out[i + 1];
    row[threadIdx.x] = mine[n];
    __syncthreads();
    out[threadIdx.x] = row[99 - threadIdx.x] + mine[n + 1];
}
extern "C" __global__ void plain(float* out) { out[threadIdx.x] = 1; }
"""


@pytest.mark.parametrize(
    "threads, registers, shared, architecture, warps",
    [
        (256, 32, 0, T4, 32),
        (32, 32, 256, T4, 16),  # 16 blocks are the most
        (256, 128, 0, T4, 16),  # a scheduler's 16384 registers hold 4 warps of 128 * 32
        (64, 129, 0, T4, 12),  # and only 3 of 4352
        (256, 32, 16 << 10, T4, 32),
        (256, 32, (16 << 10) + 4, T4, 24),
        (216, 182, 36_024, T4, 7),
        (216, 182, 18_000, T4, 7),  # registers, not shared memory, allow a single block
        (216, 128, 18_000, T4, 14),
        (256, 32, 41 << 10, A100, 24),  # four times 41 KB are all, and each block costs one more
        (320, 32, 0, A100, 60),
    ],
)
def test_warps_on_a_multiprocessor(threads, registers, shared, architecture, warps):
    assert share(threads, registers, shared, architecture) == warps / ARCHITECTURES[architecture][0]


def test_registers_local_and_shared_memory_are_the_compilers():
    pytest.importorskip("cuda.core", reason="pip install 'cnnlab[nvrtc]', for Linux")
    result = compiled(LOCAL, "sm_75")
    assert result["indexed"][1:] == (4 * 64, 4 * 100)
    assert result["plain"][1:] == (0, 0) and 0 < result["plain"][0] < 32


def test_the_report_has_a_row_for_each_kernel(monkeypatch, tmp_path):
    pytest.importorskip("cuda.core", reason="pip install 'cnnlab[nvrtc]', for Linux")
    (tmp_path / "own.cu").write_text(LOCAL)
    monkeypatch.setattr(occupancy.cuda, "SOURCES", tmp_path)
    head, *rows = occupancy.report().splitlines()
    assert head.split()[:5] == ["kernel", "threads", "shared", "sm_75:", "registers"]
    indexed, plain = map(str.split, sorted(rows))
    assert indexed[:3] == ["indexed", "256", "400"] and indexed[4] == "256"
    assert plain[:3] == ["plain", "256", "0"] and plain[4:6] == ["0", "100%"]


def test_without_nvrtc_one_line_says_what_to_install():
    code = """import runpy, sys
sys.modules["cuda"] = None
runpy.run_module("cnnlab.cuda.occupancy", run_name="__main__")"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = "NVIDIA's compiler is not installed: pip install 'cuda-core[cu12]'"
    assert done.returncode == 1 and done.stderr == f"make gpu-report: {said}\n"


def test_blocks_are_those_that_the_course_launches(monkeypatch):
    """Of each kernel in a step of the report's network."""
    launched, checked = {}, Launcher._checked

    def noted(self, name, grid, block, arguments, shared):
        launched[name] = math.prod(block), shared
        return checked(self, name, grid, block, arguments, shared)

    monkeypatch.setattr(Launcher, "_checked", noted)
    net, images = Network(), np.zeros((1, 1, 28, 28), np.float32)
    for make in (step.Layerwise, step.FusedStep):
        make(net.parameters(), images, [0], batch=1)
    step.Layerwise(net.parameters(), images, [0], batch=1, fused=True)
    device.conv_backward_input(*layer_arguments("conv_backward_input", 1)[0])
    assert launched == {name: (THREADS.get(name, 256), 0) for name in launched}
    assert launched.keys() >= THREADS.keys()
