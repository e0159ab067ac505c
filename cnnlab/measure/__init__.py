"""Benchmarks: the machine, whole training steps, single operations, and how they scale."""

from cnnlab.measure.bench import EPOCH, contestants, epochs, layer_call, run, step_times, table
from cnnlab.measure.timing import Timing, compare, in_words, ratio, same, speedup

__all__ = [
    "EPOCH", "Timing", "compare", "contestants", "epochs", "in_words", "layer_call", "ratio", "run",
    "same", "speedup", "step_times", "table",
]  # fmt: skip
