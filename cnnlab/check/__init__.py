"""Checks of answers: kernels, numbers, threads, collectives, CUDA C."""

from cnnlab.check.operation import exercise, kernel, prove, try_case
from cnnlab.check.threads import threaded
from cnnlab.check.verdict import Verdict, differences, predict

__all__ = [
    "Verdict", "differences", "exercise", "kernel", "predict", "prove", "threaded", "try_case",
]  # fmt: skip
