"""Checking a kernel in CUDA C: right numbers, and no fault in any access."""

from collections.abc import Callable

from cnnlab import cuda
from cnnlab.check import kernel as check
from cnnlab.check.inputs import CASES, STRIDE_ONE, case
from cnnlab.check.kernel import Verdict

SEVERAL_BLOCKS = case("more elements than a block has threads", 5, 4, 2, 14, 9, 3, D=60, O=11)


def kernel(operation: str, function: Callable, *, strides: bool = True) -> Verdict:
    """Check a function that launches kernels against an operation of the contract.

    It runs traced on small sizes first, where accesses out of bounds do no harm: a kernel with a
    race or a read of what nobody wrote is wrong, even if its numbers are right. `strides` says
    whether it takes one. Raises ValueError for an operation that the contract does not have.
    """
    cases = [*(CASES if strides else STRIDE_ONE)[:4], SEVERAL_BLOCKS]
    with cuda.traced() as traces:
        verdict = check.kernel(operation, function, cases=cases)
        faults = [(trace.kernel, fault) for trace in traces for fault in trace.faults()]
    if faults:
        right = "The numbers are right, but the accesses are not. " if verdict else ""
        name, fault = faults[0]
        return Verdict(False, f"{operation}: {right}{name}: {fault}")
    if not traces and verdict:
        return Verdict(False, f"{operation}: no kernel was launched")
    every = CASES if strides else STRIDE_ONE
    return check.kernel(operation, function, cases=every) if verdict else verdict


def exercise(operation: str, function: Callable, **options) -> bool:
    """Print the verdict on an answer, which may still be empty; return whether it is right."""
    verdict = kernel(operation, function, **options)
    print(verdict)
    return bool(verdict)


def prove(operation: str, function: Callable, **options) -> None:
    """Print the verdict on kernels that a lesson shows; raise AssertionError if one is wrong."""
    verdict = kernel(operation, function, **options)
    if not verdict:
        raise AssertionError(str(verdict))
    print(verdict, "and no access is at fault", sep=", ")
