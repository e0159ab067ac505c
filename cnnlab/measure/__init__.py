"""Benchmarks: the machine, whole training steps, single operations, and how they scale."""

from cnnlab.measure.bench import (
    EPOCH,
    FLOPS,
    LAYERS,
    Contestant,
    contestants,
    epochs,
    layer_call,
    layers,
    run,
    step_times,
    table,
)
from cnnlab.measure.timing import Timing, as_table, compare, in_words, measure, ratio, same, speedup

__all__ = [
    "EPOCH", "FLOPS", "LAYERS", "Contestant", "Timing", "as_table", "compare", "contestants",
    "epochs", "in_words", "layer_call", "layers", "measure", "ratio",
    "run", "same", "speedup", "step_times", "table",
]  # fmt: skip
