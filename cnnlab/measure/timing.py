"""Measuring time: check, warm up, repeat; then medians, confidence intervals and ratios.

After Hoefler and Belli, "Scientific Benchmarking of Parallel Computing Systems", SC'15: medians
with nonparametric confidence intervals, never the best run. Contestants alternate within one run,
so that a machine that slows down slows all of them.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import ArrayLike

from cnnlab.check.verdict import differences
from cnnlab.cuda.launcher import Launcher
from cnnlab.runtime import failures
from cnnlab.runtime.arguments import at_least
from cnnlab.runtime.failures import few

SHORTEST_SAMPLE = 1e-4  # seconds: a thousand times the cost of reading the clock


@dataclass(frozen=True)
class Timing:
    """Seconds per call of `name`: one sample for each repetition, in the order measured.

    `work` is the work of one call, in any unit: operations, images, bytes. Samples may be of
    several `processes`, as many of each, one process after the other; `emulated` says that CUDA C
    ran on the emulator, whose time says nothing about a GPU.
    """

    name: str
    samples: tuple[float, ...]
    work: float | None = None
    processes: int = 1
    emulated: bool = False

    def __post_init__(self) -> None:
        if not self.samples or not all(0 < s < math.inf for s in self.samples):
            raise ValueError(f"samples: expected positive seconds, got {self.samples!r}")

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.samples)

    @property
    def median(self) -> float:
        """The median of the samples."""
        return median(self.samples)

    @property
    def low(self) -> float:
        """Lower end of the median's 95 % confidence interval, see `interval`."""
        return interval(self.samples, self.processes)[0]

    @property
    def high(self) -> float:
        """Upper end of that interval."""
        return interval(self.samples, self.processes)[1]

    @property
    def rate(self) -> float | None:
        """Work per second at the median time; None if `work` is."""
        return self.work and self.work / self.median

    def __str__(self) -> str:
        scale, unit = time_unit(self.median)
        middle, low, high = (digits(s * scale) for s in (self.median, self.low, self.high))
        return f"{middle} {unit} ({low} to {high}, n={self.n})"


@dataclass(frozen=True)
class Ratio:
    """The median ratio of `n` pairs of samples, with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    n: int

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        middle, low, high = (digits(x) for x in (self.value, self.low, self.high))
        return f"{middle}× ({low} to {high}, n={self.n})"


def compare(
    contestants: Mapping[str, Callable[[], object]],
    *,
    checks: Mapping[str, Callable[[], object]] | Callable[[str], object] | None = None,
    repeats: int = 11,
    min_time: float = 0.0,
    work: float | None = None,
) -> dict[str, Timing]:
    """Time contestants in turn, A B C A B C …, so that sample i of each is from the same moment.

    `checks` has a callable for each name, or is one callable that takes the name. All checks run
    before anything is timed; if one raises or returns False, nothing is, and False raises
    AssertionError. Each call is made once to warm up, then `repeats` samples are taken, fewer and
    no longer than they must be where CNNLAB_REPEATS asks for fewer. Calls too short for the clock,
    or shorter than `min_time` seconds, are timed several at once; a sample is always seconds per
    call. `work`, of one call, is kept in the Timing.
    """
    at_least("repeats", repeats, 1)
    if few(repeats) < repeats:
        repeats, min_time = few(repeats), 0.0
    if isinstance(checks, Mapping) and not checks.keys() <= contestants.keys():
        unknown = sorted(checks.keys() - contestants.keys())
        raise ValueError(f"checks: expected names of contestants, got {unknown}")
    for name in contestants:
        if callable(checks):
            verdict = checks(name)
        else:
            verdict = (checks or {}).get(name, lambda: None)()
        if verdict is not None and not np.all(verdict):
            raise AssertionError(f"{name or 'call'}: wrong result, so not timed")
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    emulated: set[str] = set()
    n_runs = (repeats + 1) * len(contestants)
    with failures.bar(total=n_runs, desc="measuring", leave=False, delay=failures.AFTER) as bar:
        batch = {}
        for name, call in contestants.items():
            call()  # warms up
            batch[name] = _batch(call, min_time)
            bar.update()
        for _ in range(repeats):
            for name, call in contestants.items():
                before = Launcher.n_emulated
                samples[name].append(_seconds(call, batch[name]) / batch[name])
                if Launcher.n_emulated > before:
                    emulated.add(name)
                bar.update()
    return {
        name: Timing(name, tuple(taken), work, emulated=name in emulated)
        for name, taken in samples.items()
    }


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Two samples that enclose the true median with a probability of at least 95 %.

    Whatever the distribution, the number of samples below the median is binomial, so the k-th
    smallest and the k-th largest sample miss it with probability 2 P(B(n, 1/2) < k). Fewer than six
    samples cannot reach 95 %; the smallest and the largest then enclose it with 1 − 2^(1−n).
    """
    n, k = len(samples), 1
    while sum(math.comb(n, i) for i in range(k + 1)) / 2**n <= 0.025:
        k += 1
    ordered = sorted(samples)
    return ordered[k - 1], ordered[-k]


def interval(samples: Sequence[float], processes: int = 1) -> tuple[float, float]:
    """The interval of the median, from the lowest to the highest that one of the processes has.

    So it covers what differs within a process and what differs between them.
    """
    n = len(samples) // processes
    ends = [median_interval(samples[i * n : (i + 1) * n]) for i in range(processes)]
    return min(low for low, _ in ends), max(high for _, high in ends)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean of repeated runs, and half the width of its 95 % interval, by Student's t."""
    from scipy.special import stdtrit

    errors = round(stdtrit(len(values) - 1, 0.975), 2)  # 2.78 of five runs, 2.09 of twenty
    return float(np.mean(values)), errors * float(np.std(values, ddof=1)) / len(values) ** 0.5


def pooled(timings: Sequence[Timing]) -> Timing:
    """The same call timed in several processes, as often in each, as one Timing."""
    samples = tuple(sample for timing in timings for sample in timing.samples)
    return Timing(timings[0].name, samples, timings[0].work, len(timings))


def ratio(a: Timing, b: Timing) -> Ratio:
    """The ratio a / b of two timings from one `compare`: the median over their pairs of samples."""
    if a.n != b.n:
        raise ValueError(
            f"samples: expected as many of each timing, got {a.n} of {a.name} and {b.n} of {b.name}"
        )
    pairs = [x / y for x, y in zip(a.samples, b.samples, strict=True)]
    return Ratio(median(pairs), *interval(pairs, a.processes), len(pairs))


def speedup(base: Timing, other: Timing) -> Ratio:
    """How many times faster `other` is than `base`."""
    return ratio(base, other)


def same(
    got: ArrayLike,
    expected: ArrayLike,
    *,
    name: str = "",
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Raise AssertionError unless |got − expected| <= atol + rtol |expected| in every element.

    The message names the element that differs most, or says that the shapes differ. NaN is always
    wrong, even if `expected` has it too. By default rtol is 1000 times the machine epsilon of the
    coarser type (1.2e-4 in float32; integers must be equal), and atol is rtol times the largest
    expected magnitude: a sum that cancels keeps the rounding of its terms.
    """
    name, got, expected = name or "got", np.asarray(got), np.asarray(expected)
    for array in (got, expected):
        if array.dtype.kind not in "biuf":
            raise AssertionError(f"{name}: expected numbers, got {array!r}")
    if np.isnan(expected).any():
        raise AssertionError(f"{name}: expected numbers without NaN to compare with")
    if rtol is None:
        kinds = [array.dtype for array in (got, expected) if array.dtype.kind == "f"]
        rtol = 1000 * max((float(np.finfo(kind).eps) for kind in kinds), default=0.0)
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    size = np.where(np.isinf(expected), 0, np.abs(expected))
    if atol is None:
        atol = rtol * float(size.max(initial=0))
    if wrong := differences(name, got, expected, atol + rtol * size):
        raise AssertionError(wrong)


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit in which `seconds` reads best: its factor and its name."""
    units = [(1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")]
    return next((unit for unit in units if abs(seconds) * unit[0] >= 1), units[-1])


def digits(x: float) -> str:
    """A number with three significant digits, never as 1e+03."""
    return f"{x:.{max(0, 2 - math.floor(math.log10(abs(x))))}f}" if x else "0"


def in_words(seconds: float) -> str:
    """A time with three significant digits and a unit that suits it, such as "1.23 ms"."""
    scale, unit = time_unit(seconds)
    return f"{digits(seconds * scale)} {unit}"


def _seconds(call: Callable[[], object], n: int) -> float:
    """The time of n calls."""
    start = time.perf_counter()
    for _ in range(n):
        call()
    return time.perf_counter() - start


def _batch(call: Callable[[], object], min_time: float) -> int:
    """Calls in one sample: the smallest power of two that takes long enough."""
    n, least = 1, max(min_time, SHORTEST_SAMPLE)
    while _seconds(call, n) < least:
        n *= 2
    return n
