"""Check a kernel against an operation of the contract: on awkward shapes, element by element.

The same cases prove the strategies in the tests, the kernels in a lesson, and answers to exercises.
"""

import functools
import numbers
from collections.abc import Callable, Sequence

import numpy as np

from cnnlab.check.answer import OutOfTime, judge, limit
from cnnlab.check.inputs import CASES, GUARD, Case, chosen, draw, first_seed, varied
from cnnlab.check.verdict import Verdict, differences
from cnnlab.kernels import reference
from cnnlab.kernels.contract import CONTRACT, STRIDES
from cnnlab.runtime.arguments import one_of


def try_case(
    operation: str,
    function: Callable,
    case: Case,
    dtype=np.float32,
    seed: int = 0,
    normwise: float = 0,
    **options,
) -> Verdict:
    """Run a function on one case of an operation; compare every element with the reference.

    An element may differ by what rounding explains, see `tolerance`. One that comes about with the
    help of all others, as in a Fourier transform, has their rounding too: with `normwise`, each may
    differ by so many times what the largest may. `options` go to the function. It never raises.
    """
    case = case.suited(operation)
    arrays = draw(operation, case, dtype, seed)
    before = {name: array.copy() for name, array in arrays.items()}
    *inputs, output = arrays
    stride = stride_of(operation, case)
    expected, loss, allowed = references(operation, case, np.dtype(dtype), seed)
    if normwise:
        allowed = np.maximum(allowed, normwise * np.nanmax(allowed, initial=0))
    try:
        with np.errstate(all="ignore"):  # NaN and infinity are among the numbers
            returned = function(*arrays.values(), **stride, **options)
    except (Exception, SystemExit) as error:  # an answer may fail in any way: the verdict says how
        first_line = str(error).strip().partition("\n")[0]  # compilers say much
        return Verdict(False, f"{at(case)}: raised {type(error).__name__}: {first_line}")
    for name in inputs:
        if not np.array_equal(arrays[name], before[name], equal_nan=case.kind == "nan"):
            return Verdict(False, f"{at(case)}: changed its input {name}")
    around = arrays[output].base
    if not (np.all(around[:GUARD] == 7) and np.all(around[-GUARD:] == 7)):
        return Verdict(
            False, f"{at(case)}: wrote outside {output}, before its first or after its last element"
        )
    got = arrays[output]
    if case.kind == "nan" and got.shape == expected.shape:  # it may spread to other elements
        got = np.where(np.isnan(got), expected, got)
    wrong = differences(f"{at(case)}: {output}", got, expected, allowed)
    if wrong and "b" in before:
        unbiased = run_reference(operation, before | {"b": 0 * before["b"]}, stride)[0]
        if not differences(output, got, unbiased, allowed):
            wrong += "; the bias seems to be missing"
    if wrong:
        return Verdict(False, wrong)
    if loss is not None and not is_loss(returned, loss, expected.size, unit(dtype)):
        return Verdict(False, f"{at(case)}: loss: expected {loss:.6g}, got {returned!r}")
    error = 0.0 if case.kind else np.max(abs(got - expected))  # beside 2^80 it says nothing
    return Verdict(True, at(case), float(error))


def is_loss(returned, loss: float, n: int, unit: float) -> bool:
    """Whether a number is the loss of n outputs, up to the rounding of logarithms and sum."""
    if not isinstance(returned, numbers.Real) or np.isnan(loss):
        return isinstance(returned, numbers.Real) and np.isnan(returned)
    return abs(returned - loss) <= allowance(n, unit) * (loss + n)


def stride_of(operation: str, case: Case) -> dict[str, int]:
    """The stride by name, for an operation that takes one; empty where it is the default."""
    return {"stride": case.stride} if case.stride != STRIDES.get(operation, case.stride) else {}


@functools.lru_cache(maxsize=128)
def references(operation: str, case: Case, dtype, seed: int):
    """The expected output, the loss or None, and how far each element may be from the expected."""
    arrays = draw(operation, case, dtype, seed)
    stride = stride_of(operation, case)
    with np.errstate(all="ignore"):
        expected, loss = run_reference(operation, arrays, stride)
        return expected, loss, tolerance(operation, arrays, stride, expected, unit(dtype))


def unit(dtype) -> float:
    """The largest relative error of a rounding; twice that of float64, for the reference's own."""
    return 2.0**-52 if dtype == np.float64 else 2.0**-24


def allowance(n, unit: float):
    """The largest relative error of a sum of n products, in any order.

    Roundings go both ways, so that they add up like √n (Higham and Mary, 2019,
    doi:10.1137/18M1226312); 2 √n of them are six standard deviations.
    """
    return (4 + 2 * np.sqrt(n)) * unit


def tolerance(operation: str, arrays: dict, stride: dict, expected, unit: float) -> np.ndarray:
    """How far each element may be from the expected: the rounding of its terms, of any order."""
    n, magnitude = 1, abs(expected)
    if operation == "sigmoid":  # e^z of a rounded z
        magnitude = magnitude * (2 + np.minimum(abs(arrays["z"].astype(np.float64)), 100) / 4)
    elif operation == "sigmoid_backward":  # y - y² is as right as y (1 - y)
        y, dy = (abs(arrays[name].astype(np.float64)) for name in ("y", "dy"))
        magnitude = dy * y * (1 + y)
    elif operation.startswith(("conv", "pool", "dense")):
        of_terms = {name: abs(array) for name, array in arrays.items()}
        magnitude = run_reference(operation, of_terms, stride)[0]
        ones = {name: np.ones_like(array) for name, array in arrays.items()}
        n = run_reference(operation, ones, stride)[0]
    return allowance(n, unit) * magnitude + 2 * np.finfo(np.float32).tiny


def run_reference(operation: str, arrays: dict, stride: dict) -> tuple[np.ndarray, float | None]:
    """The expected output and the loss (None but for the cross-entropy), in float64."""
    exact = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in arrays.values()]
    loss = getattr(reference, operation)(*exact, **stride)
    return exact[-1], loss


def at(case: Case) -> str:
    """The name of a case, with its sizes."""
    sizes = ", ".join(f"{letter}={size}" for letter, size in case.sizes.items())
    return f"{case.what} ({sizes}, stride {case.stride})"


def kernel(
    operation: str,
    function: Callable,
    *,
    dtype=np.float32,
    repeats: int = 1,
    cases: Sequence[Case] = CASES,
    patience: float = 120,
    normwise: float = 0,
    **options,
) -> Verdict:
    """The verdict on a function as an operation of the contract, after all cases; see `try_case`.

    Each case runs `repeats` times, with new numbers each time. `options` go to the function, which
    has `patience` seconds, see `limit`. Raises ValueError for an unknown operation.
    """
    one_of("operation", operation, CONTRACT)
    passed, error, first = [], 0.0, first_seed()
    asked = varied(chosen(operation, cases))
    try:
        with limit(patience):
            for case in asked:
                for seed in range(first, first + repeats):
                    verdict = try_case(operation, function, case, dtype, seed, normwise, **options)
                    if not verdict:
                        kept = f" It is right for {passed[-1]}." if passed else ""
                        text = f"{operation}: not yet right for {verdict.text}.{kept}"
                        return Verdict(False, text)
                    error = max(error, verdict.largest_error)
                passed.append(case.what)
    except OutOfTime:
        text = f"{operation}: not done after {patience:g} seconds, at {at(asked[len(passed)])}"
        return Verdict(False, text)
    return Verdict(
        True, f"{operation} agrees with the reference on {len(asked)} shapes, to {error:.1g}", error
    )


def prove(operation: str, function: Callable, **options) -> None:
    """Print the verdict on a kernel that a lesson shows; raise AssertionError if it is wrong."""
    kernel(operation, function, **options).require()


def exercise(
    operation: str, function: Callable, by: Callable[..., Verdict] = kernel, **options
) -> bool:
    """Print the verdict on an answer, which may still be empty; return whether it is right.

    `by` gives it, with `options`. An answer that calls a strategy of cnnlab is none.
    """
    return judge(operation, function, by, options).report()
