"""Laws of scaling, fitted to measured times: what more workers bring, and what holds them up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from cnnlab.bench.measure import Timing
from cnnlab.runtime.arguments import at_least


@dataclass(frozen=True)
class Amdahl:
    """Amdahl's law: the serial fraction of a program bounds its speedup (AFIPS 1967).

    A scaling model is anything with `speedup(n)` and a `str`; plots ask for no more.
    """

    serial_fraction: float

    def speedup(self, n: float) -> float:
        """Return T(1) / T(n) with n workers."""
        return 1 / (self.serial_fraction + (1 - self.serial_fraction) / n)

    def __str__(self) -> str:
        return f"Amdahl, {100 * self.serial_fraction:.2g} % serial"


@dataclass(frozen=True)
class Usl:
    """The Universal Scalability Law: workers also wait for each other, every pair of them.

    Contention is Amdahl's serial fraction; coherence, the price of each pair that must agree, makes
    the speedup fall again after a peak (Gunther, *Guerrilla Capacity Planning*, 2007, chapter 4).
    """

    contention: float
    coherence: float

    def speedup(self, n: float) -> float:
        """Return T(1) / T(n) with n workers."""
        return n / (1 + self.contention * (n - 1) + self.coherence * n * (n - 1))

    def __str__(self) -> str:
        return (
            f"USL, {100 * self.contention:.2g} % contention, {100 * self.coherence:.2g} % coherence"
        )


def fit_amdahl(workers: Sequence[int], times: Sequence[float | Timing]) -> Amdahl:
    """Fit T(n) / T(1) = s + (1 − s) / n by least squares; s is clipped to [0, 1].

    `times` are seconds, or timings whose medians count; `workers` must hold 1 and another number.
    """
    n, relative = _scaling(workers, times)
    ideal = 1 / n
    serial = (1 - ideal) @ (relative - ideal) / ((1 - ideal) @ (1 - ideal))
    return Amdahl(float(np.clip(serial, 0, 1)))


def fit_usl(workers: Sequence[int], times: Sequence[float | Timing]) -> Usl:
    """Fit n T(n) / T(1) = 1 + a (n − 1) + b n (n − 1) by least squares, with a and b at least 0.

    As `fit_amdahl`, but `workers` must hold 1 and two other numbers.
    """
    n, relative = _scaling(workers, times)
    if len(n) < 3:
        raise ValueError(f"workers: expected 1 and two other numbers, got {list(workers)}")
    found, _ = nnls(np.c_[n - 1, n * (n - 1)].astype(float), n * relative - 1)
    return Usl(*map(float, found))


def _scaling(workers, times) -> tuple[np.ndarray, np.ndarray]:
    """Check what every scaling model is fitted to; return n and T(n) / T(1)."""
    seconds = np.array([t.median if isinstance(t, Timing) else t for t in times])
    if len(workers) != len(seconds):
        raise ValueError(f"times: expected one for each of {len(workers)}, got {len(seconds)}")
    for n in workers:
        at_least("workers", n, 1)
    if 1 not in workers or not 1 < len(set(workers)) == len(workers):
        raise ValueError(f"workers: expected 1 and other distinct numbers, got {list(workers)}")
    if not ((seconds > 0) & (seconds < math.inf)).all():
        raise ValueError(f"times: expected positive seconds, got {seconds.tolist()}")
    return np.array(workers), seconds / seconds[list(workers).index(1)]
