"""The cost of messages: fit latency and bandwidth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from cnnlab.runtime.arguments import not_negative


@dataclass(frozen=True)
class Model:
    """A message of s bytes takes L + s G seconds; an addition takes A seconds.

    `latency` is L in seconds, `gap` is G in seconds per byte, `add` is A in seconds per element.
    """

    latency: float
    gap: float
    add: float = 0.0

    def __post_init__(self):
        for name in ("latency", "gap", "add"):
            not_negative(name, getattr(self, name))

    def message(self, n: int) -> float:
        """The time of one message of n float32, in seconds."""
        return self.latency + self.gap * 4 * n

    def __str__(self) -> str:
        return (
            f"latency {1e6 * self.latency:.3g} µs, {1e-9 / self.gap if self.gap else math.inf:.3g} "
            f"GB/s, {1e9 * self.add:.2g} ns per addition"
        )


def fit(sizes: Sequence[int], seconds: Sequence[float], add: float = 0.0) -> Model:
    """Fit L and G, at least 0, to the one-way times of messages of `sizes` float32, in seconds.

    Least squares of the relative error, so that each size counts the same. `add` is measured
    separately. Raises ValueError for fewer than two sizes, or times that are not positive.
    """
    if len(sizes) != len(seconds) or len(set(sizes)) < 2:
        raise ValueError(
            f"sizes: expected at least two different ones, and a time for each, got {len(sizes)} "
            f"sizes and {len(seconds)} times"
        )
    t = np.asarray(seconds, float)
    if not (np.isfinite(t) & (t > 0)).all():
        raise ValueError(f"seconds: expected positive numbers, got {list(seconds)}")
    columns = np.c_[np.ones(len(t)), 4 * np.asarray(sizes, float)]
    scale = columns.max(0)  # the two columns differ by powers of ten
    (latency, gap), _ = nnls(columns / scale / t[:, None], np.ones(len(t)))
    return Model(latency / scale[0], gap / scale[1], add)
