"""Answers to the exercises of lesson 40, right and wrong."""

from cnnlab import data
from cnnlab.lessons.lesson_40 import cycles, efficiency, epoch, four_ranks, limit, too_many

REPORT = data.report()
LAYERS = REPORT["sequential"]["layer_seconds"]
EPOCH = REPORT["sequential"]["epoch_seconds"]
TIMES = REPORT["cuda"]["layer_speedups"]
RIGHT = [
    (too_many, sum(LAYERS.values()) - EPOCH),
]
WRONG = [
    (too_many, EPOCH - sum(LAYERS.values()), "too small"),
    (efficiency, 2.72, "too large"),
    (four_ranks, 3.06, "too large"),
    (epoch, EPOCH / 34, "too large"),
    (cycles, LAYERS["fully connected"] / TIMES[2] * 1.58e9, "too large"),
    (limit, 1083, "too large"),
]
