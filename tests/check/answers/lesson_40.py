"""Answers to the exercises of lesson 40, right and wrong."""

from cnnlab import check, data

REPORT = data.report()
LAYERS = REPORT["sequential"]["layer_seconds"]
EPOCH = REPORT["sequential"]["epoch_seconds"]
TIMES = REPORT["cuda"]["layer_speedups"]


def too_many(answer):
    return check.value("seconds too many", answer, 2.656, rtol=1e-3)


def efficiency(answer):
    return check.value("efficiency", answer, 1.36, rtol=1e-3)


def four_ranks(answer):
    return check.value("on four ranks", answer, 2.081, rtol=5e-3)


def epoch(answer):
    return check.value("seconds", answer, 0.09579, rtol=5e-3)


def nanoseconds(answer):
    return check.value("nanoseconds", answer, 6.443, rtol=5e-3)


def limit(answer):
    return check.value("times faster", answer, 14.46, rtol=5e-3)


SERIAL = (2 / REPORT["mpi"]["speedup"][0] - 1) / (2 - 1)  # Amdahl: 1 / (s + (1 - s) / 2) = 1.53
RIGHT = [
    (too_many, sum(LAYERS.values()) - EPOCH),
    (efficiency, REPORT["openmp"]["speedup"][0] / 2),
    (four_ranks, 1 / (SERIAL + (1 - SERIAL) / 4)),
    (epoch, sum(s / t for s, t in zip(LAYERS.values(), TIMES, strict=True))),
    (nanoseconds, LAYERS["fully connected"] / TIMES[2] / 60_000 * 1e9),
    (limit, sum(LAYERS.values()) / (LAYERS["pooling"] + LAYERS["fully connected"])),
]
WRONG = [
    (too_many, EPOCH - sum(LAYERS.values()), "too small"),
    (efficiency, 2.72, "too large"),
    (four_ranks, 3.06, "too large"),
    (four_ranks, 1.02, "too small"),
    (epoch, EPOCH / 34, "too large"),
    (nanoseconds, LAYERS["fully connected"] / TIMES[2] * 1e9, "too large"),
    (limit, 1083, "too large"),
]
