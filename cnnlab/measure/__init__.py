"""Benchmarks: the machine, whole training steps, single operations, and how they scale."""

from cnnlab.measure.bench import (
    EPOCH,
    FLOPS,
    LAYERS,
    Contestant,
    contestants,
    epochs,
    layer_call,
    layer_shapes,
    layers,
    recorded,
    run,
    step_times,
    table,
)

__all__ = [
    "EPOCH", "FLOPS", "LAYERS", "Contestant", "contestants", "epochs", "layer_call",
    "layer_shapes", "layers", "recorded", "run", "step_times", "table",
]  # fmt: skip


# --- benchmarks: the machine, whole training steps, single operations, and how they scale ---------
