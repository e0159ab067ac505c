"""Vectors that kernels can name, against NumPy on the same numbers."""

import operator
import platform

import llvmlite.binding
import numba
import numpy as np
import pytest

from cnnlab import data
from cnnlab.kernels import KERNELS, lanes, registers
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.kernels.registers import (
    BUDGETS,
    LANES,
    block,
    larger,
    load,
    only,
    smaller,
    store,
    summed,
    totals,
    where_at_most,
    where_equal,
    where_not_larger,
)
from cnnlab.network import Network
from tests.programs import run

X86 = platform.machine() in ("x86_64", "AMD64")
OLD = llvmlite.binding.llvm_version_info[0] < 16
ZEN = [pytest.mark.skipif(OLD, reason="LLVM 15 does not know it")]


def run_for(cpu, program, *arguments):
    """What a program prints whose kernels are compiled for another processor; "": for this one."""
    return run(program, *arguments, **({"NUMBA_CPU_NAME": cpu} if cpu else {})).stdout.strip()


@pytest.mark.skipif(not X86, reason="these are x86 processors")
@pytest.mark.parametrize(
    "cpu, expected",
    [("sandybridge", registers.AVX), pytest.param("znver4", registers.AVX512, marks=ZEN)],
)
def test_registers_are_those_of_the_processor_that_numba_is_told(cpu, expected):
    program = "import cnnlab; from cnnlab.kernels import registers as r; print(r.detected())"
    assert run_for(cpu, program) == str(expected)


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


@pytest.mark.parametrize("width, count", BUDGETS)
def test_sums_keep_the_arithmetic_busy_and_leave_room_for_what_is_loaded(width, count):
    shapes = registers.budget(registers.Registers("", width, count))
    product = 1 if (width, count) == (4, 16) else 0  # without fmadd it needs a register
    for rows, columns in shapes:
        assert 8 <= rows * columns <= count - min(rows, columns) - 1 - product


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
from cnnlab.kernels import lanes
import numba

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

flat, offsets = "float32[::1]", "int64[::1]"
scalar = r".*(?:add|sub|mul|div)[0-9]*ss .*|.*f(?:madd|add|sub|mul|div)[ \t]+s[0-9].*"
budget = registers.budget(registers.detected())
print(registers.detected())
for shape, (rows, columns) in zip(budget._fields, budget):
    @numba.njit(error_model="numpy")
    def multiply(w, x, z, tables, r):
        lanes.multiply_in(registers.tile(rows, columns), w, w, x, z, tables, r)

    @numba.njit(error_model="numpy")
    def add_products(dz, x, dw, tables, r):
        lanes.add_products_in(registers.tile(rows, columns), dz, x, dw, tables, r)

    for kernel in (multiply, add_products)[: 1 if shape in ("broad", "tall") else 2]:
        modules.clear()
        kernel.compile(f"({flat}, {flat}, {flat}, {offsets}, {offsets})")
        code = hot_loop(cross_compiled() if system else next(iter(kernel.inspect_asm().values())))
        slow = re.findall(f".*gather.*|{scalar}", code)
        sums = len(ARITHMETIC.findall(code)), rows * columns
        print(kernel.__name__, shape, *sums, len(SPILL.findall(code)), *slow)
"""
CPUS = {  # one for each budget
    "nehalem": registers.SSE2,
    "haswell": registers.AVX2,
    "skylake-avx512": registers.AVX512,
    "neoverse-n1": registers.NEON,
}
SYSTEM = {"neoverse-n1": "aarch64-unknown-linux-gnu"}


@pytest.mark.slow
@pytest.mark.parametrize("cpu", CPUS)
def test_hot_loops_keep_their_sums_in_registers(cpu):
    """No sum goes to the stack and back, no vector is gathered, no number goes alone.

    For ARM, what Numba made for this machine is compiled for the other: vectors are in it already.
    """
    if not X86 and cpu not in SYSTEM:
        pytest.skip("these are x86 processors")
    each = 2 if cpu == "nehalem" else 1  # without fmadd, two instructions for each sum
    said = run_for("" if cpu in SYSTEM else cpu, HOT, cpu, SYSTEM.get(cpu, ""))
    registers_there, *lines = said.splitlines()
    assert registers_there == str(CPUS[cpu])
    for line in lines:
        _, _, arithmetic, sums, spills, *slow = line.split()
        assert (int(arithmetic), int(spills), slow) == (each * int(sums), 0, []), line
    assert len(lines) == 6


GRADIENTS = """
from tests.kernels.test_registers import gradients
print(gradients("vector").tobytes().hex())
"""


def gradients(name):
    """The gradients of 71 images."""
    digits, params, grads = data.load("digits", 71, 10), Network().parameters(), Network().zeros()
    images, labels = digits.train_images, digits.train_labels
    loss_and_gradients(KERNELS[name], params, images, labels, grads)
    return grads.flat


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="these are x86 processors")
def test_narrow_vectors_have_the_same_gradients():
    grads = np.frombuffer(bytes.fromhex(run_for("nehalem", GRADIENTS)), np.float32)
    right = gradients("loops")
    np.testing.assert_allclose(grads, right, rtol=0, atol=1e-4 * abs(right).max())


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


EXPRESSIONS = {
    "f(p, q)": lambda f: f(A[1:4], B[2:5]),
    "f(p, o)": lambda f: f(A[1:4], B[0]),
    "f(o, p)": lambda f: f(B[0], A[1:4] + np.float32(0)),
    "f(p, number)": lambda f: f(A[1:4], np.float32(1.5)),
    "f(number, q)": lambda f: f(np.float32(1.5), B[2:5]),
}


@pytest.mark.parametrize("symbol", OPERATIONS)
def test_arithmetic_is_element_by_element(symbol):
    """Of Blocks: p and q of three vectors, o of one; and a number."""
    ours, numpys = OPERATIONS[symbol]
    scope = {"np": np, "block": block, "load": load, "store": store, "f": ours}
    exec(
        "def kernel(a, b, number, out):\n"
        "    p = load(a, 1, block(np.float32(0), 3))\n"
        "    q = load(b, 2, p)\n"
        "    o = load(b, 0, block(np.float32(0), 1))\n"
        + "".join(f"    store(out[{i}], 2, {text})\n" for i, text in enumerate(EXPRESSIONS)),
        scope,
    )
    out = np.full((len(EXPRESSIONS), 6, LANES), np.nan, np.float32)
    numba.njit(error_model="numpy")(scope["kernel"])(A, B, np.float32(1.5), out)
    for result, expected in zip(out, EXPRESSIONS.values(), strict=True):
        np.testing.assert_allclose(result[2:5], expected(numpys), rtol=3e-7)
        assert np.isnan(result[:2]).all() and np.isnan(result[5:]).all()


def test_a_sum_grows_in_place_and_its_vectors_are_added_up():
    @numba.njit
    def kernel(a, w, out):
        s = block(np.float32(1), 2)
        for i in range(4):
            s += w * load(a, i, s)
        store(out, 0, summed(s))
        return totals(s)

    out = np.zeros(LANES, np.float32)
    each = kernel(A, np.float32(0.5), out)
    exact = [LANES + 0.5 * A[i : i + 4].astype(float).sum() for i in (0, 1)]
    np.testing.assert_allclose(each, exact, rtol=1e-6)
    expected = 2 + 0.5 * sum(A[i : i + 4].astype(float).sum(0) for i in (0, 1))
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_numbers_are_chosen_and_nan_is_larger_than_any():
    nan = np.nan
    a = np.resize(np.float32([1, 2, 3, nan, nan, 5]), LANES)
    b = np.resize(np.float32([2, 2, 1, 1, nan, nan]), LANES)

    @numba.njit
    def kernel(a, b, out):
        one = block(np.float32(0), 1)
        x, y = load(a, 0, one), load(b, 0, one)
        store(out[0], 0, where_at_most(x, y, x, y))
        store(out[1], 0, where_equal(x, y, x, one))
        store(out[2], 0, where_not_larger(x, y, y, x))
        store(out[3], 0, only(x, 1, 3))

    out = np.zeros((4, LANES), np.float32)
    kernel(a, b, out)
    np.testing.assert_array_equal(out[0], np.where(a <= b, a, b))
    np.testing.assert_array_equal(out[1], np.where((a == b) | np.isnan(a), a, 0))
    np.testing.assert_array_equal(out[2], np.where((a <= b) | np.isnan(b), b, a))
    kept = (np.arange(LANES) >= 1) & (np.arange(LANES) < 3)
    np.testing.assert_array_equal(out[3], np.where(kept, a, 0))


def test_the_sigmoid_is_right_to_rounding_and_keeps_nan():
    z = np.linspace(-86, 86, 1003 * LANES).astype(np.float32).reshape(-1, LANES)
    y = z.copy()
    lanes.activate(y, len(y), lanes.SIGMOID)
    near = abs(z) < 4  # 4e-7 is three roundings; far from zero, exp rounds -z as well
    for chosen, rtol in ((near, 4e-7), (~near, 5e-6)):
        exact = 1 / (1 + np.exp(-z[chosen].astype(float)))
        np.testing.assert_allclose(y[chosen], exact, rtol=rtol)
    extremes = np.resize(np.float32([np.nan, -np.inf, np.inf, -1e30, 1e30]), (5, LANES))
    result = extremes.copy()
    lanes.activate(result, len(result), lanes.SIGMOID)
    assert (np.isnan(result) == np.isnan(extremes)).all()
    assert (abs(1 - 2**-24 - result[extremes > 0]) <= 2**-24).all()
    assert (result[extremes < 0] < 1e-37).all()
