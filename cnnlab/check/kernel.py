"""Checking a kernel: run it on awkward shapes, compare, and say exactly what is wrong.

The same cases prove the strategies in the tests, the kernels shown in a lesson, and the answers to
exercises.
"""

import functools
import itertools
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numba.core.errors import NumbaError

from cnnlab.check.access_log import race
from cnnlab.check.inputs import CASES, CROWDS, GUARD, STRIDE_ONE, Case, draw
from cnnlab.check.machine_code import vector_instructions
from cnnlab.kernels import reference
from cnnlab.kernels.contract import CONTRACT, STRIDES
from cnnlab.runtime import thread_pool


@dataclass(frozen=True)
class Verdict:
    """What a check found; true if all is well. Printing it is telling the learner."""

    passed: bool
    text: str
    largest_error: float = 0.0

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return f"{'✓' if self.passed else '✗'} {self.text}"


def try_case(
    operation: str, function: Callable, case: Case, dtype=np.float32, seed: int = 0, **options
) -> Verdict:
    """Run one contract function on one case and compare every element with the reference.

    An element may differ by 1e-5 (float64: 1e-13) of the sum of its terms' magnitudes, which is the
    rounding of a sum in any order but far less than any term left out. Never raises for a wrong
    answer.
    """
    arrays = draw(operation, case, dtype, seed)
    before = {name: array.copy() for name, array in arrays.items()}
    *inputs, output = arrays
    stride = {"stride": case.stride} if operation in STRIDES else {}
    expected, loss, magnitude = references(operation, case, np.dtype(dtype), seed)
    try:
        passed = {} if stride == {"stride": STRIDES.get(operation)} else stride  # the default
        returned = function(*arrays.values(), **passed, **options)
    except Exception as error:  # a learner's answer may fail in any way; the verdict tells how
        return Verdict(False, f"{at(case)}: raised {type(error).__name__}: {error}")
    for name in inputs:
        if not np.array_equal(arrays[name], before[name]):
            return Verdict(False, f"{at(case)}: changed its input {name}")
    around = arrays[output].base
    if not (np.all(around[:GUARD] == 7) and np.all(around[-GUARD:] == 7)):
        return Verdict(
            False, f"{at(case)}: wrote outside {output}, before its first or after its last element"
        )
    tolerance = (1e-13 if dtype == np.float64 else 1e-5) * (abs(magnitude) + 1e-2)
    wrong = differences(f"{at(case)}: {output}", arrays[output], expected, tolerance)
    if wrong and "b" in before:
        unbiased = run_reference(operation, before | {"b": 0 * before["b"]}, stride)[0]
        if not differences(output, arrays[output], unbiased, tolerance):
            wrong += "; all is as if a bias were missing"
    if wrong:
        return Verdict(False, wrong)
    right = 1e-13 if dtype == np.float64 else 1e-5
    if loss is not None and not (
        isinstance(returned, numbers.Real) and np.isclose(returned, loss, rtol=right)
    ):
        return Verdict(False, f"{at(case)}: the loss should be {loss:.6g}, got {returned!r}")
    return Verdict(True, at(case), float(np.max(abs(arrays[output] - expected))))


@functools.lru_cache(maxsize=32)
def references(operation: str, case: Case, dtype, seed: int):
    """The expected output, the loss if there is one, and the magnitude of each sum's terms."""
    arrays = draw(operation, case, dtype, seed)
    stride = {"stride": case.stride} if operation in STRIDES else {}
    expected, loss = run_reference(operation, arrays, stride)
    magnitudes = {name: abs(array) for name, array in arrays.items()}
    return expected, loss, run_reference(operation, magnitudes, stride)[0]


def run_reference(operation: str, arrays: dict, stride: dict) -> tuple[np.ndarray, float | None]:
    """The expected output, and for the cross-entropy its loss, in float64."""
    exact = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in arrays.values()]
    loss = getattr(reference, operation)(*exact, **stride)
    return exact[-1], loss


def differences(name: str, got: np.ndarray, expected: np.ndarray, tolerance: np.ndarray) -> str:
    """Say which element differs, where and by how much; an empty string if none does."""
    if got.shape != expected.shape:
        return f"{name} should have shape {expected.shape}, got {got.shape}"
    error = abs(got - expected)
    bad = ~(error <= tolerance)  # NaN is bad
    if not bad.any():
        return ""
    if np.isnan(got).all():
        return (
            f"{name} was never written, or added to without being set to zero first, "
            "or made of what lies beyond the end of an input"
        )
    index = tuple(
        int(i)
        for i in np.unravel_index(
            np.argmax(np.where(bad, np.nan_to_num(error, nan=np.inf), -1)), bad.shape
        )
    )
    place = f"{name}[{', '.join(map(str, index))}]"
    text = f"{place} should be {expected[index]:.6g}, got {got[index]:.6g}"
    if np.isnan(got[index]):
        text = f"{place} should be {expected[index]:.6g}, was not written or is not a number"
    return f"{text}; {bad.sum()} of {bad.size} elements differ" + hint(got, expected, tolerance)


def hint(got: np.ndarray, expected: np.ndarray, tolerance: np.ndarray) -> str:
    """Name a well-known slip where the numbers show it."""
    ratio = got / np.where(expected == 0, np.nan, expected)
    factor = np.nanmedian(ratio) if np.isfinite(ratio).any() else np.nan
    if np.isfinite(factor) and abs(factor) > 1e-3 and abs(factor - 1) > 1e-3:
        plain = min(abs(factor - round(factor)), abs(1 / factor - round(1 / factor))) < 1e-3
        if (plain or got.size > 1) and np.all(
            abs(got - factor * expected) <= (1 + abs(factor)) * tolerance
        ):
            return f"; all are {factor:.4g} times what they should be"
    for axes in itertools.permutations(range(got.ndim)):
        if axes != tuple(range(got.ndim)) and expected.transpose(axes).shape == got.shape:
            if np.all(abs(got - expected.transpose(axes)) <= tolerance.transpose(axes)):
                return f"; right with its axes in the order {axes}"
    return ""


def at(case: Case) -> str:
    """Name a case with its sizes."""
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
    """Check a function against one of the contract's operations, on all cases; see `try_case`.

    `repeats` runs each case so often, with other numbers each time. Options go to the function.
    Raises ValueError for an operation that the contract does not have; a wrong function gets a
    verdict that says what is wrong.
    """
    if operation not in CONTRACT:
        raise ValueError(f"operation should be one of {', '.join(CONTRACT)}, got {operation!r}")
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
    verdict = kernel(operation, function, **options)
    if not verdict:
        raise AssertionError(str(verdict))
    print(verdict)


def exercise(operation: str, function: Callable, **options) -> bool:
    """Print the verdict on an answer, which may still be empty; return whether it is right."""
    verdict = kernel(operation, function, **options)
    print(verdict)
    return bool(verdict)


def vectorized(operation: str, function: Callable, **options) -> bool:
    """Like `exercise`, for a Numba kernel that must also have vector instructions."""
    if not exercise(operation, function, **options):
        return False
    if not hasattr(function, "inspect_asm"):
        print(Verdict(False, f"{operation}: decorate it with @numba.njit, it is plain Python"))
        return False
    count = vector_instructions(function)
    print(Verdict(count > 0, f"{operation}: {count} vector instructions in its machine code"))
    return count > 0


def threaded(operation: str, function: Callable, **options) -> bool:
    """Like `exercise`, for a parallel kernel: on 1, 2, 3 and more threads than cores, many times.

    A race may go well for a while, so a large case is run again and again on each; and its loops
    are followed as plain Python, where they allow it, for two iterations at one element: then fewer
    runs will do. Uses as many threads as Numba has room for, see `cnnlab.runtime.thread_pool`.
    """
    for n_threads in sorted(
        {1, min(2, thread_pool.size()), min(3, thread_pool.size()), min(16, thread_pool.size())}
    ):
        with thread_pool.threads(n_threads):
            seen = followed(operation, function, options) if n_threads > 1 else None
            verdict = Verdict(True, "") if seen is None else seen
            if verdict:
                verdict = kernel(operation, function, cases=STRIDE_ONE, **options)
            if verdict:
                times = 1 if n_threads == 1 else 3 if seen else 12
                verdict = kernel(operation, function, cases=times * CROWDS, **options)
        if not verdict:
            threads = "1 thread" if n_threads == 1 else f"{n_threads} threads"
            right = "" if n_threads == 1 else "right on fewer, and "
            print(Verdict(False, f"on {threads} ({right}wrong here): {verdict.text}"))
            return False
    print(Verdict(True, f"{operation} agrees with the reference on 1 to {n_threads} threads"))
    return True


def followed(operation: str, function: Callable, options: dict) -> Verdict | None:
    """Whether two iterations of a parallel loop meet at an element, see `accesses.race`.

    None for a kernel that cannot be followed as plain Python: the clock must do.
    """
    tried = STRIDE_ONE[2]
    try:
        with np.errstate(all="ignore"):  # outputs hold NaN before they are written
            found = race(function, draw(operation, tried), **options)
    except (TypeError, AttributeError, NumbaError):
        return None
    except IndexError as error:
        return Verdict(False, f"{at(tried)}: {error}")
    return Verdict(found is None, f"{at(tried)}: {found}")


def value(what: str, got, expected: float, *, rtol: float = 1e-6, why: str = "") -> bool:
    """Print whether a number, an answer to a question, is right; `why` explains it once it is."""
    if got is None or got is ...:
        print(Verdict(False, f"{what}: not yet answered"))
        return False
    try:
        right = bool(np.isclose(float(got), expected, rtol=rtol, atol=0))
    except (TypeError, ValueError):
        right = None
    if right is None or np.isnan(float(got)):
        print(Verdict(False, f"{what}: a number is wanted, got {got!r}"))
        return False
    if right:
        print(Verdict(True, f"{what}: {got}" + (f" — {why}" if why else "")))
    else:
        print(
            Verdict(False, f"{what}: {got} is too {'large' if float(got) > expected else 'small'}")
        )
    return right
