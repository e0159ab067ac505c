"""Checks of answers: kernels, numbers, threads, collectives, CUDA C."""

from cnnlab.check.operation import exercise, kernel, prove, try_case
from cnnlab.check.verdict import Verdict, differences, predict

__all__ = ["Verdict", "differences", "exercise", "kernel", "predict", "prove", "try_case"]
