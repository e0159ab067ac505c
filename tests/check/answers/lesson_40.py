"""Answers to the exercises of lesson 40, right and wrong."""

from cnnlab import data
from cnnlab.lessons.lesson_40 import four_ranks, impossible, limit, too_many, unrolled, verdicts

REPORT = data.report()
LAYERS = REPORT["sequential"]["layer_seconds"]
EPOCH = REPORT["sequential"]["epoch_seconds"]
SERIAL = (2 / 1.53 - 1) / (2 - 1)  # Amdahl: 1 / (s + (1 - s) / 2) = 1.53


def referee(above=1.0, rise=0.05, ordered=True, relative=False, keep=True, e=None):
    """Words for speedups: right as it is, wrong with any other argument."""
    fraction = e or (lambda s, p: (p / s - 1) / (p - 1))

    def words(speedups):
        said, before = {}, None
        for p in sorted(speedups) if ordered else speedups:
            s = speedups[p]
            now = fraction(s, p)
            grows = before is not None and now - before > rise * (abs(before) if relative else 1)
            said[p] = "slow base" if s > above * p else "overhead" if grows else "serial part"
            if keep or said[p] != "slow base":
                before = now
        return said

    return words


RIGHT = [
    (too_many, sum(LAYERS.values()) - EPOCH),
    (too_many, 97.7 + 5.127 + 2.129 - 102.3),  # rounded as one reads it
    (four_ranks, 1 / (SERIAL + (1 - SERIAL) / 4)),
    (limit, sum(LAYERS.values()) / (LAYERS["pooling"] + LAYERS["fully connected"])),
    (verdicts, referee()),
    (unrolled, 1568 * 4 / 1.5820),
]
WRONG = [
    (too_many, EPOCH - sum(LAYERS.values()), "too small"),
    (four_ranks, 3.06, "too large"),
    (four_ranks, 1.02, "too small"),
    (limit, 1083, "too large"),
    (verdicts, referee(above=0.95), "expected"),
    (verdicts, referee(rise=0.0), "expected"),
    (verdicts, referee(ordered=False), "expected"),
    (verdicts, referee(relative=True), "expected"),
    (verdicts, referee(keep=False), "expected"),
    (verdicts, referee(e=lambda s, p: 1 / s - 1 / p), "expected"),  # not divided by 1 − 1 / p
    (verdicts, referee(e=lambda s, p: 1 - s / p), "expected"),  # of the efficiency
    (verdicts, lambda speedups: list(referee()(speedups).values()), "expected"),
    (unrolled, 3136 * 4 / 1.58, "too large"),
    (unrolled, 3136 / 2 / 1.58, "too small"),
    (impossible, "A", "A"),
    (impossible, "B", "B"),
]
