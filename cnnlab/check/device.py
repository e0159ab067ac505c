"""Check kernels in CUDA C: right numbers, and no fault in any access."""

import dataclasses
from collections.abc import Callable

from cnnlab import cuda
from cnnlab.check.inputs import CASES, STRIDE_ONE, case
from cnnlab.check.operation import kernel as against_reference
from cnnlab.check.verdict import Verdict

SEVERAL_BLOCKS = case("more elements than a block has threads", 5, 4, 2, 14, 9, 3, D=60, O=11)


def kernel(
    operation: str,
    function: Callable,
    *,
    strides: bool = True,
    also: Callable[[list], str] | None = None,
) -> Verdict:
    """The verdict on a function that launches kernels, as an operation of the contract.

    It is traced on small sizes first, where accesses out of bounds do no harm: a kernel with a race
    or an uninitialised read is wrong, even if its numbers are right. `strides`: it takes a stride.
    `also(traces)`: what else is wrong, in words. Raises ValueError for an unknown operation.
    """
    cases = CASES if strides else STRIDE_ONE
    with cuda.traced() as traces:
        verdict = against_reference(operation, function, cases=[*cases[:4], SEVERAL_BLOCKS])
        faults = [(trace.kernel, fault) for trace in traces for fault in trace.faults()]
    if faults:
        right = "The numbers are right, but the accesses are not. " if verdict else ""
        name, fault = faults[0]
        return Verdict(False, f"{operation}: {right}{name}: {fault}")
    if not traces and verdict:
        return Verdict(False, f"{operation}: no kernel was launched")
    if verdict and also and (wrong := also(traces)):
        return Verdict(False, f"{operation}: The numbers are right, but {wrong}")
    if verdict:
        verdict = against_reference(operation, function, cases=cases)
    if not verdict:
        return verdict
    return dataclasses.replace(verdict, text=f"{verdict.text}, and no access is at fault")


def prove(operation: str, function: Callable, **options) -> None:
    """Print the verdict on kernels that a lesson shows; raise AssertionError if one is wrong."""
    kernel(operation, function, **options).require()
