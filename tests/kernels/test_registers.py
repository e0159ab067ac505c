"""Vectors that kernels can name, against NumPy on the same numbers."""

import operator
import os
import platform
import subprocess
import sys

import llvmlite.binding
import numba
import numpy as np
import pytest

from cnnlab.kernels import registers
from cnnlab.kernels.registers import (
    BUDGETS,
    LANES,
    block,
    larger,
    load,
    shifted,
    smaller,
    store,
    totals,
)
from cnnlab.kernels.vector.lanes import from_lanes, sigmoid_lanes, to_lanes

X86 = platform.machine() in ("x86_64", "AMD64")
OLD = llvmlite.binding.llvm_version_info[0] < 16
ZEN = [pytest.mark.skipif(OLD, reason="LLVM 15 does not know it")]


def run(program, cpu, *arguments):
    """What a program prints whose kernels are compiled for another processor; "": for this one."""
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CPU_FEATURES"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment | ({"NUMBA_CPU_NAME": cpu} if cpu else {}),
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
        pytest.param("znver4", registers.AVX512, marks=ZEN),
    ],
)
def test_registers_are_those_of_the_processor_that_numba_is_told(cpu, expected):
    program = "import cnnlab; from cnnlab.kernels import registers as r; print(r.detected())"
    assert run(program, cpu) == str(expected)


@pytest.mark.parametrize(
    "code, expected",
    [
        ("vfmadd213ps (%rsi), %zmm0, %zmm1", registers.AVX512),
        ("fmla v0.4s, v1.4s, v2.4s", registers.NEON),
        ("fmla.4s v0, v1, v2", registers.NEON),
        ("xvmaddasp 0, 1, 2", registers.Registers(None, 4, 16)),
    ],
)
def test_registers_are_read_from_assembly(code, expected, monkeypatch):
    monkeypatch.setattr(registers, "assembly", lambda: code)
    assert registers.detected() == expected


@pytest.mark.parametrize("lanes, count", BUDGETS)
def test_sums_keep_the_arithmetic_busy_and_leave_room_for_what_is_loaded(lanes, count):
    pixels, maps, taps = registers.budget(registers.Registers("", lanes, count))
    product = 1 if (lanes, count) == (4, 16) else 0  # without fmadd it needs a register
    assert 8 <= pixels <= count - 2 - product
    assert 8 <= maps * taps <= count - maps - 1 - product


HOT = """
import importlib.util, re, sys
import cnnlab
import cnnlab.kernels
cpu, system = sys.argv[1:]
if system:  # the module looks at the processor as it loads
    spec = importlib.util.find_spec("cnnlab.kernels.registers")
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    source = spec.loader.get_source(spec.name)
    exec(source.replace("LANES = ", "detected = lambda: NEON\\nLANES = ", 1), module.__dict__)
import llvmlite.binding as llvm
from numba.core.codegen import CPUCodeLibrary
from cnnlab.check.machine_code import ARITHMETIC, SPILL, hot_loop
from cnnlab.kernels import registers
from cnnlab.kernels.vector import lanes

modules, optimize = [], CPUCodeLibrary._optimize_final_module
def keep(library):
    optimize(library)
    modules.append(str(library._final_module))
CPUCodeLibrary._optimize_final_module = keep

def cross_compiled():
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(system).create_target_machine(cpu=cpu, opt=3)
    code = max(modules, key=len)
    code = re.sub("^target triple.*", f'target triple = "{system}"', code, flags=re.M)
    layout = f'target datalayout = "{target.target_data}"'
    code = re.sub("^target datalayout.*", layout, code, flags=re.M)
    atomic = r"(tail )?call i8 @llvm[.]x86[.]atomic.*"  # counts references, outside the loops
    return target.emit_assembly(llvm.parse_assembly(re.sub(atomic, "add i8 0, 0", code)))

maps, weights, rows = "float32[:,:,:,::1]", "float32[:,:,::1]", "float32[:,::1]"
scalar = r".*(?:add|sub|mul|div)[0-9]*ss .*|.*f(?:madd|add|sub|mul|div)[ \t]+s[0-9].*"
for kernel, arguments in (
    (lanes.conv_map_forward, f"({maps}, {weights}, float32, {weights})"),
    (lanes.conv_maps_backward, f"({maps}, {maps}, {maps})"),
    (lanes.sigmoid_lanes, f"({rows},)"),
    (lanes.pool_map_forward, f"({weights}, {rows}, float32, {weights})"),
    (lanes.pool_map_backward, f"({weights}, {rows}, {weights}, {weights}, {weights})"),
    (lanes.dense_lanes_forward, f"({rows}, {rows}, float32[::1], {rows})"),
    (lanes.dense_lanes_backward, f"({rows}, {rows}, {rows}, {rows})"),
):
    modules.clear()
    kernel.compile(arguments)
    code = hot_loop(cross_compiled() if system else next(iter(kernel.inspect_asm().values())))
    slow = re.findall(f".*gather.*|{scalar}", code)
    print(kernel.__name__, len(ARITHMETIC.findall(code)), len(SPILL.findall(code)), *slow)
"""
SUMS = {"nehalem": (12, 10), "haswell": (12, 10), "skylake-avx512": (12, 15), "znver4": (12, 15)}
SUMS |= {"apple-m1": (24, 15), "neoverse-n1": (24, 15)}
SYSTEM = {"apple-m1": "arm64-apple-macosx", "neoverse-n1": "aarch64-unknown-linux-gnu"}


@pytest.mark.slow
@pytest.mark.parametrize("cpu", [pytest.param(cpu, marks=ZEN * (cpu == "znver4")) for cpu in SUMS])
def test_hot_loops_keep_their_sums_in_registers(cpu):
    """No sum goes to the stack and back, no vector is gathered, no number goes alone.

    For ARM, what Numba made for this machine is compiled for the other: vectors are in it already.
    """
    if not X86 and cpu not in SYSTEM:
        pytest.skip("these are x86 processors")
    result = {}
    for line in run(HOT, "" if cpu in SYSTEM else cpu, cpu, SYSTEM.get(cpu, "")).splitlines():
        kernel, arithmetic, spills, *slow = line.split()
        assert not slow, line
        result[kernel] = int(arithmetic), int(spills)
    each = 2 if cpu == "nehalem" else 1  # without fmadd, two instructions for each sum
    assert result.pop("conv_map_forward") == (SUMS[cpu][0] * each, 0)
    assert result.pop("conv_maps_backward") == (SUMS[cpu][1] * each, 0)
    wide = SUMS[cpu][0] == 24 or SUMS[cpu][1] == 15  # 32 registers
    assert result.pop("sigmoid_lanes")[1] <= (0 if wide else 3)  # its ten constants take most of 16
    assert len(result) == 4 and all(spills == 0 for _, spills in result.values())


TRAIN = """
from cnnlab.data import load
from cnnlab.training import train
run = train(load("digits", 330, 100), "vector", batch=50, epochs=2, progress=False)
print(run.params.flat.tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="these are x86 processors")
def test_every_budget_trains_alike():
    cpus = ["nehalem"] + ["haswell"] * (registers.detected().lanes > 4)
    result = [np.frombuffer(bytes.fromhex(run(TRAIN, cpu)), np.float32) for cpu in cpus]
    from cnnlab.data import load
    from cnnlab.training import train

    here = train(load("digits", 330, 100), "loops", batch=50, epochs=2, progress=False)
    for flat in result:
        np.testing.assert_allclose(flat, here.params.flat, atol=2e-5)


A = np.random.default_rng(0).uniform(-4, 4, (6, LANES)).astype(np.float32)
B = np.random.default_rng(1).uniform(1, 4, (6, LANES)).astype(np.float32)
OPERATIONS = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "/": (operator.truediv, operator.truediv),
    "smaller": (smaller, np.minimum),
    "larger": (larger, np.maximum),
}


def compiled(expression, operation):
    """A kernel that writes an expression of Blocks: p of three vectors, o of one, and a number."""
    scope = {"np": np, "block": block, "load": load, "store": store, "f": operation}
    exec(
        "def kernel(a, b, number, out):\n"
        "    p = load(a, 1, block(np.float32(0), 3))\n"
        "    q = load(b, 2, p)\n"
        "    o = load(b, 0, block(np.float32(0), 1))\n"
        f"    store(out, 2, {expression})\n",
        scope,
    )
    return numba.njit(error_model="numpy")(scope["kernel"])


@pytest.mark.parametrize("symbol", OPERATIONS)
@pytest.mark.parametrize(
    "expression, expected",
    [
        ("f(p, q)", lambda f: f(A[1:4], B[2:5])),
        ("f(p, o)", lambda f: f(A[1:4], B[0])),
        ("f(o, p)", lambda f: f(B[0], A[1:4] + np.float32(0))),
        ("f(p, number)", lambda f: f(A[1:4], np.float32(1.5))),
        ("f(number, q)", lambda f: f(np.float32(1.5), B[2:5])),
    ],
)
def test_arithmetic_is_element_by_element(symbol, expression, expected):
    ours, numpys = OPERATIONS[symbol]
    out = np.full((6, LANES), np.nan, np.float32)
    compiled(expression, ours)(A, B, np.float32(1.5), out)
    np.testing.assert_allclose(out[2:5], expected(numpys), rtol=3e-7)
    assert np.isnan(out[:2]).all() and np.isnan(out[5:]).all()


def test_a_sum_grows_in_place_and_is_added_up_vector_by_vector():
    @numba.njit
    def kernel(a, w):
        s = block(np.float32(1), 2)
        for i in range(4):
            s += w * load(a, i, s)
        return totals(s)

    expected = [LANES + 0.5 * A[i : i + 4].astype(float).sum() for i in (0, 1)]
    np.testing.assert_allclose(kernel(A, np.float32(0.5)), expected, rtol=1e-6)


def test_bits_are_shifted():
    @numba.njit
    def kernel(a, out):
        store(out, 1, shifted(load(a, 0, block(np.float32(0), 2)), 3))

    ints = np.arange(-LANES, LANES, dtype=np.int32) * 1234567
    out = np.zeros(4 * LANES, np.float32)
    kernel(ints.view(np.float32), out)
    assert (out[LANES : 3 * LANES].view(np.int32) == ints << 3).all() and not out[:LANES].any()


@pytest.mark.parametrize("n", range(LANES + 1))
def test_images_lie_side_by_side_and_lanes_without_one_are_zero(n):
    images = np.random.default_rng(0).random((n, 5), np.float32)
    x, result = np.full((5, LANES), np.nan, np.float32), np.full_like(images, np.nan)
    to_lanes(images, np.arange(n), x)
    assert (x[:, :n] == images.T).all() and (x[:, n:] == 0).all()
    from_lanes(x, result)
    assert (result == images).all()


def test_the_sigmoid_is_right_to_rounding_and_keeps_nan():
    z = np.linspace(-86, 86, 1003 * LANES).astype(np.float32).reshape(-1, LANES)
    y = z.copy()
    sigmoid_lanes(y)
    near = abs(z) < 4  # 4e-7 is three roundings; far from zero, exp rounds -z as well
    for chosen, rtol in ((near, 4e-7), (~near, 5e-6)):
        exact = 1 / (1 + np.exp(-z[chosen].astype(float)))
        np.testing.assert_allclose(y[chosen], exact, rtol=rtol)
    extremes = np.resize(np.float32([np.nan, -np.inf, np.inf, -1e30, 1e30]), (5, LANES))
    result = extremes.copy()
    sigmoid_lanes(result)
    assert (np.isnan(result) == np.isnan(extremes)).all()
    assert (abs(1 - 2**-24 - result[extremes > 0]) <= 2**-24).all()
    assert (result[extremes < 0] < 1e-37).all()
