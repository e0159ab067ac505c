"""Vectors that kernels can name, against NumPy on the same numbers."""

import operator

import numba
import numpy as np
import pytest

from cnnlab.kernels.registers import (
    LANES,
    Block,
    block,
    larger,
    load,
    shifted,
    smaller,
    store,
    totals,
)

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


def test_blocks_of_one_size_are_one_type():
    assert Block(3) == Block(3) != Block(2)
