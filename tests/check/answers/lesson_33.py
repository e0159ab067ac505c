"""Answers to the exercises of lesson 33, right and wrong."""

from cnnlab import data
from cnnlab.lessons.lesson_33 import floor, fused, image_by_image, smaller_windows, together
from tests.check.changed import changed

TIMES = data.report()["cuda"]["layer_speedups"]

RIGHT = [
    (together, 104.956 / (97.7 / 1083 + 5.127 / 987 + 2.129 / 5507)),
    (floor, 240 * 19 * 5e-6),
    (image_by_image, 60_000 * 19 * 5e-6),
    (smaller_windows, 100 / 61),
    (fused, changed(fused, ("dy * y[i] * (1.0f - y[i])", "dy * (y[i] - y[i] * y[i])"))),
]
WRONG = [
    (together, sum(TIMES) / 3, "too large"),
    (together, 34, "too small"),
    (floor, 240 * 5e-6, "too small"),
    (image_by_image, 60_000 * 5e-6, "too small"),
    (image_by_image, "5.7 s", "expected a number"),
    (smaller_windows, 400 / 89, "too large"),
    (fused, changed(fused, ("if (i >= size) return;", "")), "out of bounds"),
    (fused, changed(fused, (" * (1.0f - y[i])", "")), "out["),
    (fused, changed(fused, ("row % S", "row / S")), "elements differ"),
    (fused, changed(fused, ("row / S) * Q", "row) * Q")), "out of bounds"),
    (fused, changed(fused, ("int P = H / S", "int P = W / S")), "out"),
]
