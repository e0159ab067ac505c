import json
import os
import platform
import re

import numpy as np
import pytest

from cnnlab.kernels import registers
from cnnlab.measure import machine
from tests.programs import run

KEYS = (
    "cpu physical_cores logical_cores usable_cores simd simd_lanes caches memory os python numpy "
    "numba threading_layers mpi compiler gpu"
).split()


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A Linux without /proc, /sys and any command."""
    monkeypatch.setattr(machine, "CPUS", tmp_path / "cpu")
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine, "_output", lambda *command: None)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    return tmp_path


def answers(monkeypatch, answers):
    monkeypatch.setattr(machine, "_output", lambda *command: answers.get(" ".join(command)))


def test_description_is_json_and_complete():
    facts = machine.describe()
    assert json.loads(json.dumps(facts)) == facts
    assert list(facts) == KEYS
    assert 1 <= facts["usable_cores"] <= facts["logical_cores"]
    assert facts["memory"] > 2**28
    assert facts["python"] == platform.python_version() and facts["numpy"] == np.__version__
    assert "workqueue" in facts["threading_layers"]


def test_unknown_facts_are_none(bare):
    facts = machine.describe()
    for key in ("cpu", "physical_cores", "caches", "mpi", "compiler", "gpu"):
        assert facts[key] is None, key
    assert len(machine.summary().splitlines()) == 6
    assert "GPU: not found" in machine.summary()
    assert "None" not in machine.caption()


def test_describing_starts_no_threads_and_no_mpi():
    code = (
        "import sys, threading; from cnnlab.measure import machine; machine.describe();"
        "from numba.np.ufunc import parallel;"
        "print(parallel._is_initialized, threading.active_count(), 'mpi4py.MPI' in sys.modules)"
    )
    assert run(code).stdout.split() == ["False", "1", "False"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity is a matter of Linux")
def test_affinity_counts():
    code = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
        "from cnnlab.runtime import thread_pool; print(thread_pool.usable_cores())"
    )
    assert run(code).stdout.strip() == "1"


def test_linux_cpu_cores_and_caches(bare):
    name = "Intel(R) Xeon(R) CPU @ 2.20GHz"
    (bare / "cpuinfo").write_text(
        f"processor\t: 0\ncpu family\t: 6\nmodel\t\t: 79\nmodel name\t: {name}\n"
    )
    for cpu in range(4):  # two cores of two threads
        topology = bare / "cpu" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}\n")
    for index, (level, kind, size) in enumerate(
        [(1, "Data", "32K"), (1, "Instruction", "48K"), (2, "Unified", "1024K")]
    ):
        folder = bare / "cpu" / "cpu0" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for file, value in [("level", level), ("type", kind), ("size", size)]:
            (folder / file).write_text(f"{value}\n")
    facts = machine.describe()
    assert facts["cpu"] == "Intel Xeon @ 2.20GHz, family 6 model 79"
    assert facts["physical_cores"] == 2
    assert facts["caches"] == {"L1d": 32 * 1024, "L2": 1024 * 1024}
    assert machine.caption().startswith("Intel Xeon @ 2.20GHz, family 6 model 79 · ")
    assert " · L1d 32 KiB, L2 1,024 KiB · " in machine.caption()


def test_arm_linux_asks_lscpu(bare, monkeypatch):
    (bare / "cpuinfo").write_text("processor\t: 0\nCPU part\t: 0xd0c\n")
    answers(monkeypatch, {"lscpu": "Architecture: aarch64\nModel name:   Neoverse-N1\n"})
    assert machine.describe()["cpu"] == "Neoverse-N1"


def test_macos_asks_sysctl(bare, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    facts = {
        "sysctl -n machdep.cpu.brand_string": "Apple M2",
        "sysctl -n hw.physicalcpu": "8",
        "sysctl -n hw.l1dcachesize": "65536",
        "sysctl -n hw.l2cachesize": "4194304",
        "gcc --version": "Apple clang version 16.0.0\nTarget: arm64",
    }
    answers(monkeypatch, facts)
    result = machine.describe()
    assert (result["cpu"], result["physical_cores"]) == ("Apple M2", 8)
    assert result["caches"] == {"L1d": 65536, "L2": 4194304}
    assert result["compiler"] is None  # without its tools, macOS would open a dialogue
    answers(monkeypatch, facts | {"xcode-select -p": "/Library/Developer"})
    assert machine.describe()["compiler"] == "Apple clang version 16.0.0"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (registers.AVX512, "AVX-512, 16 float32 lanes"),
        (registers.NEON, "NEON, 4 float32 lanes"),
        (registers.Registers(None, 4, 16), None),
    ],
)
def test_vectors_are_those_that_kernels_are_compiled_for(monkeypatch, result, expected):
    monkeypatch.setattr(registers, "detected", lambda: result)
    assert machine.describe()["simd"] == expected


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("4.1.2 MPICH Version:      5.0.2\nMPICH Release date: …", "MPICH 5.0.2 (mpi4py 4.1.2)"),
        ("4.0.3 Open MPI v5.0.6, package: Open MPI …", "Open MPI v5.0.6 (mpi4py 4.0.3)"),
        ("4.0.3 Intel(R) MPI Library 2021.13", "Intel(R) MPI Library 2021.13 (mpi4py 4.0.3)"),
    ],
)
def test_mpi_library(monkeypatch, printed, expected):
    monkeypatch.setattr(machine, "_output", lambda *command: printed)
    assert machine._mpi() == expected


def test_gpu_and_operating_system(bare, monkeypatch):
    query = "nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader"
    answers(monkeypatch, {query: "Tesla T4, 15360 MiB, 550.54\nTesla T4, 15360 MiB, 550.54"})
    assert machine.describe()["gpu"] == "; ".join(["Tesla T4, 15360 MiB, 550.54"] * 2)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"PRETTY_NAME": "Ubuntu"})
    monkeypatch.setattr(platform, "release", lambda: "6.6.87.2-microsoft-standard-WSL2")
    assert machine.describe()["os"] == "Ubuntu (WSL)"


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_peak_kernel_does_all_its_operations(lanes):
    sweep = machine._multiply_adds(lanes, 12)
    # After one sweep the k-th vector holds k / 2 + 1 / 4; in the end all hold 1 / 2.
    assert sweep(1) == lanes * sum(k / 2 + 0.25 for k in range(12))
    assert sweep(100) == lanes * 12 * 0.5


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86")
@pytest.mark.parametrize(("lanes", "register"), [(8, "ymm"), (16, "zmm")])
def test_peak_kernel_uses_wide_fused_multiply_adds(lanes, register):
    name, widest, count = machine.registers.detected()
    if lanes > widest or name not in ("AVX2", "AVX-512"):
        pytest.skip("this processor has no such instruction")
    n_sums = 3 * count // 4
    (assembly,) = machine._multiply_adds(lanes, n_sums).inspect_asm().values()
    fused = re.findall(rf"vfmadd\w+ps.*%{register}", assembly)
    assert fused and len(fused) % n_sums == 0
    assert not re.search(rf"v(mulps|movups|movaps) .*\(%rsp\).*%{register}", assembly)  # no spill


def test_ceilings_are_measured_once_and_plausible():
    peak = machine.float32_peak(0.02)
    assert 1e8 < peak < 1e12
    assert machine.float32_peak(0.02) == peak
    assert 1e8 < machine.memory_bandwidth(0.02) < 1e12
    with pytest.raises(ValueError, match="lanes: expected 1, 4, 8 or 16, got 5"):
        machine.float32_peak(lanes=5)


def test_the_peak_has_a_call_of_the_fastest_width(monkeypatch):
    monkeypatch.setattr(machine.registers, "detected", lambda: ("AVX-512", 16, 32))
    monkeypatch.setattr(machine, "_multiply_adds", lambda lanes, n_sums: lambda n: lanes)
    monkeypatch.setattr(machine, "float32_peak", lambda seconds, lanes: {4: 1, 8: 3, 16: 2}[lanes])
    call, flops = machine.peak_sweep()
    assert call() == 8 and flops == 2 * 8 * 24 * 200_000
    assert machine._peak_sweep(8, n_sums=1)[1] == 2 * 8 * 200_000
