"""Scaling laws fitted to measured times: Amdahl's, and the Universal Scalability Law."""

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

    Plots take any law that has `speedup(n)` and a `str`.
    """

    serial_fraction: float

    def speedup(self, n: float) -> float:
        """T(1) / T(n), the speedup on n workers."""
        return 1 / (self.serial_fraction + (1 - self.serial_fraction) / n)

    def __str__(self) -> str:
        return f"Amdahl, {100 * self.serial_fraction:.3g} % serial"


@dataclass(frozen=True)
class Usl:
    """The Universal Scalability Law: Amdahl's law, and a cost for every pair of workers.

    Contention is Amdahl's serial fraction. Coherence is the cost of a pair that must agree; it
    makes the speedup peak and fall again (Gunther, *Guerrilla Capacity Planning*, 2007, chapter 4).
    """

    contention: float
    coherence: float

    def speedup(self, n: float) -> float:
        """T(1) / T(n), the speedup on n workers."""
        return n / (1 + self.contention * (n - 1) + self.coherence * n * (n - 1))

    def __str__(self) -> str:
        return (
            f"USL, {100 * self.contention:.3g} % contention, {100 * self.coherence:.3g} % coherence"
        )


def fit_amdahl(workers: Sequence[int], times: Sequence[float | Timing]) -> Amdahl:
    """Fit T(n) / T(1) = s + (1 − s) / n by least squares, with s clipped to [0, 1].

    `times[i]` is the time on `workers[i]` workers, in seconds or as a Timing, whose median counts.
    Raises ValueError unless `workers` are distinct numbers, 1 and at least one other.
    """
    n, relative = _scaling(workers, times)
    ideal = 1 / n
    serial = (1 - ideal) @ (relative - ideal) / ((1 - ideal) @ (1 - ideal))
    return Amdahl(float(np.clip(serial, 0, 1)))


def fit_usl(workers: Sequence[int], times: Sequence[float | Timing]) -> Usl:
    """Fit n T(n) / T(1) = 1 + a (n − 1) + b n (n − 1) by least squares, with a and b at least 0.

    Arguments as in `fit_amdahl`, but `workers` must hold at least two numbers besides 1.
    """
    n, relative = _scaling(workers, times)
    if len(n) < 3:
        raise ValueError(f"workers: expected 1 and two other numbers, got {list(workers)}")
    found, _ = nnls(np.c_[n - 1, n * (n - 1)].astype(float), n * relative - 1)
    return Usl(*map(float, found))


def _scaling(workers, times) -> tuple[np.ndarray, np.ndarray]:
    """Check the measurements that a law is fitted to; n and T(n) / T(1) as arrays."""
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
