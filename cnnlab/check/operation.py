"""Check a kernel against an operation of the contract: on awkward shapes, element by element.

The same cases prove the strategies in the tests, the kernels in a lesson, and answers to exercises.
"""

import functools
import numbers
from collections.abc import Callable, Sequence

import numpy as np

from cnnlab.check.inputs import CASES, GUARD, Case, draw
from cnnlab.check.verdict import Verdict, differences
from cnnlab.kernels import reference
from cnnlab.kernels.contract import CONTRACT, STRIDES
from cnnlab.runtime.arguments import one_of


def try_case(
    operation: str, function: Callable, case: Case, dtype=np.float32, seed: int = 0, **options
) -> Verdict:
    """Run a function on one case of an operation; compare every element with the reference.

    An element may differ by 1e-5 (float64: 1e-13) of the sum of its terms' magnitudes: enough for
    rounding in any order, and far less than a missing term. `options` go to the function. A wrong
    function never raises.
    """
    case = case.of(operation)
    arrays = draw(operation, case, dtype, seed)
    before = {name: array.copy() for name, array in arrays.items()}
    *inputs, output = arrays
    stride = stride_of(operation, case)
    expected, loss, magnitude = references(operation, case, np.dtype(dtype), seed)
    rounding = 1e-13 if dtype == np.float64 else 1e-5
    try:
        returned = function(*arrays.values(), **stride, **options)
    except Exception as error:  # an answer may fail in any way: the verdict says how
        return Verdict(False, f"{at(case)}: raised {type(error).__name__}: {error}")
    for name in inputs:
        if not np.array_equal(arrays[name], before[name]):
            return Verdict(False, f"{at(case)}: changed its input {name}")
    around = arrays[output].base
    if not (np.all(around[:GUARD] == 7) and np.all(around[-GUARD:] == 7)):
        return Verdict(
            False, f"{at(case)}: wrote outside {output}, before its first or after its last element"
        )
    tolerance = rounding * (abs(magnitude) + 1e-2)
    wrong = differences(f"{at(case)}: {output}", arrays[output], expected, tolerance)
    if wrong and "b" in before:
        unbiased = run_reference(operation, before | {"b": 0 * before["b"]}, stride)[0]
        if not differences(output, arrays[output], unbiased, tolerance):
            wrong += "; the bias seems to be missing"
    if wrong:
        return Verdict(False, wrong)
    if loss is not None and not (
        isinstance(returned, numbers.Real) and np.isclose(returned, loss, rtol=rounding)
    ):
        return Verdict(False, f"{at(case)}: loss: expected {loss:.6g}, got {returned!r}")
    return Verdict(True, at(case), float(np.max(abs(arrays[output] - expected))))


def stride_of(operation: str, case: Case) -> dict[str, int]:
    """The stride by name, for an operation that takes one; empty where it is the default."""
    return {"stride": case.stride} if case.stride != STRIDES.get(operation, case.stride) else {}


@functools.lru_cache(maxsize=32)
def references(operation: str, case: Case, dtype, seed: int):
    """The expected output, the loss or None, and the sum of magnitudes of each element's terms."""
    arrays = draw(operation, case, dtype, seed)
    stride = stride_of(operation, case)
    expected, loss = run_reference(operation, arrays, stride)
    magnitudes = {name: abs(array) for name, array in arrays.items()}
    return expected, loss, run_reference(operation, magnitudes, stride)[0]


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
    **options,
) -> Verdict:
    """The verdict on a function as an operation of the contract, after all cases; see `try_case`.

    Each case runs `repeats` times, with new numbers each time. `options` go to the function.
    Raises ValueError for an unknown operation; a wrong function gets a verdict that says what is
    wrong.
    """
    one_of("operation", operation, CONTRACT)
    passed, error = [], 0.0
    chosen = [c for c in cases if c.stride == 1 or operation in STRIDES]
    for case in chosen:
        for seed in range(repeats):
            verdict = try_case(operation, function, case, dtype, seed, **options)
            if not verdict:
                kept = f" It is right for {passed[-1]}." if passed else ""
                return Verdict(False, f"{operation}: not yet right for {verdict.text}.{kept}")
            error = max(error, verdict.largest_error)
        passed.append(case.what)
    return Verdict(
        True,
        f"{operation} agrees with the reference on {len(chosen)} shapes, to {error:.1g}",
        error,
    )


def prove(operation: str, function: Callable, **options) -> None:
    """Print the verdict on a kernel that a lesson shows; raise AssertionError if it is wrong."""
    kernel(operation, function, **options).require()


def exercise(operation: str, function: Callable, **options) -> bool:
    """Print the verdict on an answer, which may still be empty; return whether it is right."""
    return kernel(operation, function, **options).report()
