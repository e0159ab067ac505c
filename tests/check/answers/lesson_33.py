"""Answers to the exercises of lesson 33, right and wrong."""

from cnnlab import check, data


def together(answer):
    return check.value("together", answer, 1095.4, rtol=2e-3)


def floor(answer):
    return check.value("seconds", answer, 0.022325, rtol=5e-3)


def image_by_image(answer):
    return check.value("seconds", answer, 5.7, rtol=5e-3)


SECONDS = data.report()["sequential"]["layer_seconds"].values()
TIMES = data.report()["cuda"]["layer_speedups"]
FAST = sum(s / t for s, t in zip(SECONDS, TIMES, strict=True))
RIGHT = [
    (together, sum(SECONDS) / FAST),
    (floor, 235 * 19 * 5e-6),
    (image_by_image, 60_000 * 19 * 5e-6),
]
WRONG = [
    (together, sum(TIMES) / 3, "too large"),
    (together, 34, "too small"),
    (floor, 235 * 5e-6, "too small"),
    (image_by_image, 60_000 * 5e-6, "too small"),
    (image_by_image, "5.7 s", "expected a number"),
]
