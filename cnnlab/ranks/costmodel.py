"""What a message costs: latency and bandwidth fitted here, times predicted, clusters simulated."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from cnnlab.ranks.schedules import NOBODY, SCHEDULES
from cnnlab.runtime.arguments import at_least


@dataclass(frozen=True)
class Model:
    """A message of s bytes takes L + s G seconds, and adding one element takes A more.

    `latency` L in seconds, `gap` G in seconds a byte, `add` A in seconds an element. The formulas
    below write γ for the bytes of an element, `size_of`: 4 for float32.
    """

    latency: float
    gap: float
    add: float = 0.0
    size_of: int = 4

    def __post_init__(self):
        for name in ("latency", "gap", "add"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} should be at least 0, got {getattr(self, name)!r}")

    def message(self, n: int) -> float:
        """Seconds for one message of n elements."""
        return self.latency + self.gap * self.size_of * n

    def __str__(self) -> str:
        return (
            f"latency {1e6 * self.latency:.3g} µs, {1e-9 / self.gap if self.gap else math.inf:.3g} "
            f"GB/s, {1e9 * self.add:.2g} ns an addition"
        )


def tree(model: Model, ranks: int, n: int) -> float:
    """2 L log2 P + 2 γ m G log2 P, and m additions a level; m elements on P ranks."""
    levels = math.log2(ranks)
    return 2 * levels * model.message(n) + levels * n * model.add


def butterfly(model: Model, ranks: int, n: int) -> float:
    """L log2 P + γ m G log2 P, and m additions a round."""
    return math.log2(ranks) * (model.message(n) + n * model.add)


def ring(model: Model, ranks: int, n: int) -> float:
    """2 L (P − 1) + 2 γ m G (P − 1) / P, and m (P − 1) / P additions."""
    return (ranks - 1) * (2 * model.message(n / ranks) + n / ranks * model.add)


def rabenseifner(model: Model, ranks: int, n: int) -> float:
    """2 L log2 P + 2 γ m G (P − 1) / P, and m (P − 1) / P additions."""
    share = n * (ranks - 1) / ranks
    return 2 * model.latency * math.log2(ranks) + share * (
        2 * model.gap * model.size_of + model.add
    )


def lower_bound(model: Model, ranks: int, n: int) -> float:
    """L log2 P + 2 γ m G (P − 1) / P: no schedule can be faster in both."""
    share = n * (ranks - 1) / ranks
    return model.latency * math.log2(ranks) + 2 * model.gap * model.size_of * share


PREDICTED: dict[str, Callable[[Model, int, int], float]] = {
    "tree": tree,
    "butterfly": butterfly,
    "ring": ring,
    "rabenseifner": rabenseifner,
}


def fit(
    sizes: Sequence[int], seconds: Sequence[float], add: float = 0.0, size_of: int = 4
) -> Model:
    """Fit L and G to one-way times of messages of `sizes` elements, each size counting the same.

    Least squares of the relative error, with L and G at least 0; `add` is measured apart.
    """
    if len(sizes) != len(seconds) or len(set(sizes)) < 2:
        raise ValueError(
            f"sizes: expected two different ones or more, each with its seconds, got {len(sizes)} "
            f"sizes and {len(seconds)} times"
        )
    t = np.asarray(seconds, float)
    if not (np.isfinite(t) & (t > 0)).all():
        raise ValueError(f"seconds: expected positive numbers, got {list(seconds)}")
    columns = np.c_[np.ones(len(t)), size_of * np.asarray(sizes, float)]
    scale = columns.max(0)  # bytes and ones differ by powers of ten
    (latency, gap), _ = nnls(columns / scale / t[:, None], np.ones(len(t)))
    return Model(latency / scale[0], gap / scale[1], add, size_of)


def simulate(
    model: Model,
    schedule: str,
    ranks: int,
    n: int,
    start: Sequence[float] | None = None,
) -> np.ndarray:
    """When each rank has finished a schedule, in seconds: an event for every message.

    A message leaves when its sender has come to it, and arrives L + s G later; a rank goes on to
    its next round when its own message is out (s G) and what it waits for has come and been added.
    `start[i]` is when rank i begins (default: all at 0).
    """
    at_least("ranks", ranks, 1)
    at_least("n", n, 0)
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule: expected one of {', '.join(SCHEDULES)}, got {schedule!r}")
    now = np.zeros(ranks) if start is None else np.array(start, float)
    if len(now) != ranks:
        raise ValueError(f"start: expected one time for each of {ranks} ranks, got {len(now)}")
    latency, byte, add = model.latency, model.gap * model.size_of, model.add
    programs = [SCHEDULES[schedule](rank, ranks, n) for rank in range(ranks)]
    for steps in zip(*programs, strict=True):
        numbers = np.fromiter(itertools.chain.from_iterable(steps), int, 7 * ranks)
        to, a, b, source, c, d, adds = numbers.reshape(ranks, 7).T
        sent = np.where(to != NOBODY, b - a, 0)
        received = np.where(source != NOBODY, d - c, 0)
        came = np.maximum(now, now[source]) + latency + received * (byte + add * adds)
        now = np.maximum(now + sent * byte, np.where(received, came, 0))
    return now
