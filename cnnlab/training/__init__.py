"""Training: the loop, what a rank trains with, ways to train, optimisers and checkpoints."""

from cnnlab.training.loop import (
    BATCH,
    RATE,
    Diverged,
    Training,
    accuracy,
    check_batch_size,
    predict,
    train,
)
from cnnlab.training.method import Method
from cnnlab.training.optimizers import OPTIMIZERS, Sgd
from cnnlab.training.replica import Loop, Replica

__all__ = [
    "BATCH", "OPTIMIZERS", "RATE", "Diverged", "Loop", "Method", "Replica", "Sgd", "Training",
    "accuracy", "check_batch_size", "predict", "train",
]  # fmt: skip
