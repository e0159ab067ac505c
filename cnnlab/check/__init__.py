"""Checking answers: kernels, numbers, threads, collectives, CUDA C."""

from cnnlab.check.kernel import (
    Verdict,
    differences,
    exercise,
    kernel,
    prove,
    threaded,
    try_case,
    value,
    vectorized,
)  # fmt: skip

__all__ = [
    "Verdict", "differences", "exercise", "kernel", "prove", "threaded", "try_case", "value",
    "vectorized",
]  # fmt: skip
