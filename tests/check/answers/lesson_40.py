"""Answers to the exercises of lesson 40, right and wrong."""

from cnnlab import data
from cnnlab.lessons.lesson_40 import cycles, efficiency, epoch, four_ranks, limit, too_many

REPORT = data.report()
LAYERS = REPORT["sequential"]["layer_seconds"]
EPOCH = REPORT["sequential"]["epoch_seconds"]
TIMES = REPORT["cuda"]["layer_speedups"]
SERIAL = (2 / 1.53 - 1) / (2 - 1)  # Amdahl: 1 / (s + (1 - s) / 2) = 1.53
RIGHT = [
    (too_many, sum(LAYERS.values()) - EPOCH),
    (too_many, 97.7 + 5.127 + 2.129 - 102.3),  # rounded as one reads it
    (efficiency, 2.72 / 2),
    (four_ranks, 1 / (SERIAL + (1 - SERIAL) / 4)),
    (epoch, 97.7 / 1083 + 5.127 / 987 + 2.129 / 5507),
    (cycles, LAYERS["fully connected"] / TIMES[2] / 60_000 * 1.58e9),
    (limit, sum(LAYERS.values()) / (LAYERS["pooling"] + LAYERS["fully connected"])),
]
WRONG = [
    (too_many, EPOCH - sum(LAYERS.values()), "too small"),
    (efficiency, 2.72, "too large"),
    (four_ranks, 3.06, "too large"),
    (four_ranks, 1.02, "too small"),
    (epoch, EPOCH / 34, "too large"),
    (cycles, LAYERS["fully connected"] / TIMES[2] * 1.58e9, "too large"),
    (cycles, 6.44, "too small"),
    (limit, 1083, "too large"),
]
