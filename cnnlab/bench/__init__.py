"""Benchmarks: the machine, whole training steps, single operations, and how they scale."""

from cnnlab.bench.contestants import Contestant
from cnnlab.bench.operations import LAYERS, layer_call, layer_shapes, layers
from cnnlab.bench.records import recorded
from cnnlab.bench.report import run, table
from cnnlab.bench.steps import EPOCH, FLOPS, contestants, epochs, step_times

__all__ = [
    "EPOCH", "FLOPS", "LAYERS", "Contestant", "contestants", "epochs", "layer_call",
    "layer_shapes", "layers", "recorded", "run", "step_times", "table",
]  # fmt: skip
