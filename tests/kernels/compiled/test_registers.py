import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from cnnlab.kernels.compiled import registers
from cnnlab.kernels.compiled.registers import BUDGETS, LANES

X86 = platform.machine() in ("x86_64", "AMD64")


def run(program, cpu):
    """What a program prints whose kernels are compiled for another processor."""
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CPU_FEATURES"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"NUMBA_CPU_NAME": cpu},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not X86, reason="these are x86 processors")
@pytest.mark.parametrize(
    "cpu, expected",
    [
        ("nehalem", registers.SSE2),
        ("sandybridge", registers.AVX),
        ("haswell", registers.AVX2),
        ("skylake-avx512", registers.AVX512),
        ("znver4", registers.AVX512),
    ],
)
def test_registers_are_those_of_the_processor_that_numba_is_told(cpu, expected):
    program = "import cnnlab; from cnnlab.kernels.compiled import registers as r; print(r.found())"
    assert run(program, cpu) == str(expected)


@pytest.mark.parametrize(
    "code, expected",
    [
        ("vfmadd213ps (%rsi), %zmm0, %zmm1", registers.AVX512),
        ("fmla v0.4s, v1.4s, v2.4s", registers.NEON),
        ("xvmaddasp 0, 1, 2", registers.Registers(None, 4, 16)),
    ],
)
def test_registers_are_read_from_assembly(code, expected, monkeypatch):
    monkeypatch.setattr(registers, "assembly", lambda: code)
    assert registers.found() == expected


@pytest.mark.parametrize("lanes, count", BUDGETS)
def test_sums_keep_the_arithmetic_busy_and_leave_room_for_what_is_loaded(lanes, count):
    each = LANES // lanes  # registers for a vector of sixteen
    pixels, taps = registers.budget(registers.Registers("", lanes, count))
    for sums, loaded in ((pixels, 1), (3 * taps, 1 + taps)):
        # what is multiplied may come from memory in pieces: one register at a time
        assert 8 <= sums * each <= count - min(loaded * each, 4)


HOT = """
import re
import cnnlab
from cnnlab.kernels.vector import lanes
maps, weights = "float32[:,:,:,::1]", "float32[:,:,::1]"
for kernel, arguments in (
    (lanes.conv_map_forward, f"({maps}, {weights}, float32, {weights})"),
    (lanes.conv_maps_backward, f"({maps}, {maps}, {maps})"),
):
    kernel.compile(arguments)
    (code,) = kernel.inspect_asm().values()
    loops = re.split(r"^[.]LBB\\w+:", code, flags=re.MULTILINE)
    hot = max(loops, key=lambda loop: len(re.findall("fmadd|mulps", loop)))
    slow = re.findall(r".*ps\\b.*%rsp.*|.*gather.*|.*[lds]ss .*", hot)
    print(len(re.findall("fmadd|mulps", hot)) >= 8, *slow)
"""


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="these are x86 processors")
@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512", "znver4"])
def test_hot_loops_keep_their_sums_in_registers(cpu):
    """No vector goes to the stack and back, none is gathered, no number goes alone."""
    assert run(HOT, cpu) == "True\nTrue"


TRAIN = """
from cnnlab.data import load
from cnnlab.training import train
run = train(load("digits", 330, 100), "vector", batch=50, epochs=2, progress=False)
print(run.params.flat.tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="these are x86 processors")
def test_every_budget_trains_alike():
    cpus = ["nehalem"] + ["haswell"] * (registers.found().lanes > 4)
    found = [np.frombuffer(bytes.fromhex(run(TRAIN, cpu)), np.float32) for cpu in cpus]
    from cnnlab.data import load
    from cnnlab.training import train

    here = train(load("digits", 330, 100), "loops", batch=50, epochs=2, progress=False)
    for flat in found:
        np.testing.assert_allclose(flat, here.params.flat, atol=2e-5)
