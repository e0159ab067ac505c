"""Lesson 00b, the machine: exercises, how loops are timed that each show one thing."""

import functools
import mmap
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import inputs, kinds
from cnnlab.measure import machine
from cnnlab.measure.machine import LARGEST, ones, read_all
from cnnlab.measure.timing import Timing, compare, measure
from cnnlab.plots.style import ERRORS, GREY, OTHERS, measured, note
from cnnlab.runtime.failures import few

LINE = 64  # bytes of a cache line on most processors


@kinds.number(
    "While one addition is under way, how many others could begin?",
    "Each sum has one addition under way at a time. To begin two in each of four cycles, you need "
    "as many sums as additions that are under way at once.",
)
def sums():
    """Latency times throughput: four cycles, two additions begun in each, so eight under way."""
    return 4 * 2


@kinds.number(
    "How many cache lines do 28 rows touch, if each row begins a line of its own?",
    "A column has a number in each row, and no two rows share a line. A row has 28 numbers of 4 "
    "bytes: how many lines of 64 bytes is that?",
)
def lines():
    """28 lines for a column; 28 × 4 = 112 bytes, so two lines, for a row. 14 times as many."""
    return 28 / 2


def draw_machine(rng):
    """A peak (GFLOP/s), a bandwidth (GB/s), and the FLOP and bytes of a program (G)."""
    names = "peak", "bandwidth", "flop", "bytes_moved"
    return {name: float(x) for name, x in zip(names, rng.uniform(1, 100, 4), strict=True)}


@kinds.formula(
    draw_machine,
    "Two things take time: computing at the peak, and moving at the bandwidth.",
    "They overlap at best, so the longer of the two counts, not their sum.",
)
def at_least(peak, bandwidth, flop, bytes_moved):
    """The roofline, read as a time: whichever of the two is longer is the bound."""
    return max(flop / peak, bytes_moved / bandwidth)


@kinds.tested(
    lambda mine: wrong_sum(mine),
    "Each of the four sums takes every fourth number, or a quarter of the array.",
    "What about the numbers left over, when the length is no multiple of four? A loop takes them.",
)
def four_sums(a):
    """The quarters go to four sums that do not wait for each other; then come those left over."""
    quarter = len(a) // 4
    rows = a[: 4 * quarter].reshape(4, quarter)
    total = add_up_4(rows[0], rows[1], rows[2], rows[3])
    for x in a[4 * quarter :]:
        total += x
    return total


def wrong_sum(mine) -> str:
    """What is wrong with a function that adds up float32; "" if nothing."""
    for n in (0, 1, 2, 3, 4, 5, 7, 8, 63, 1000, 1001):
        a = np.random.default_rng([n, inputs.first_seed()]).random(n, np.float32)
        expected, got = a.sum(dtype=np.float64), mine(a.copy())
        if got is None or not np.isscalar(got) or not abs(float(got) - expected) <= 1e-5 * n:
            return f"of {n} numbers: expected {expected:.6g}, got {got}"
    return ""


# --- what a machine does at every size: bandwidth and latency, with the sizes of its caches -------


@measured
def staircase(
    sizes: Sequence[float],
    values: Sequence[tuple[float, float, float]],
    *,
    xlabel: str,
    ylabel: str,
    edges: Mapping[str, float] | None = None,
    format_x=None,
    log_y: bool = False,
) -> Axes:
    """Draw (middle, low, high) over sizes, and a line at each of `edges`, such as caches."""
    _, ax = plt.subplots(figsize=(7.5, 3.6))
    middle, low, high = np.array(values).T
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.set_xscale("log", base=2)
    errors = [middle - low, high - middle]
    ax.errorbar(sizes, middle, errors, fmt="o-", markersize=4, color=OTHERS[0], **ERRORS)
    if log_y:
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter("{x:g}")
    else:
        ax.set_ylim(0, 1.15 * middle.max())
    if format_x:
        ax.xaxis.set_major_formatter(lambda x, _: format_x(x))
    for name, size in (edges or {}).items():
        ax.axvline(size, color=GREY, linestyle="--", linewidth=1.2)
        top = ax.get_ylim()[1]
        note(ax, name, (size, top), (-3, -2), ha="right", va="top", color=GREY)
    return ax


def in_bytes(size: float) -> str:
    """A size in KiB or MiB, short."""
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"


# --- times of loops, each of which shows one thing about a processor ------------------------------


@numba.njit(nogil=True)
def add_up_1(a):
    """The sum of a (M): each addition waits for the one before."""
    s = np.float32(0)
    for i in range(a.size):
        s += a[i]
    return s


@numba.njit(nogil=True)
def add_up_2(a, b):
    """The sum of the halves a and b (M): two sums that do not wait for each other."""
    s, t = np.float32(0), np.float32(0)
    for i in range(a.size):
        s += a[i]
        t += b[i]
    return s + t


@numba.njit(nogil=True)
def add_up_4(a, b, c, d):
    """The sum of the quarters a, b, c and d (M): four sums that do not wait for each other."""
    s, t, u, v = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for i in range(a.size):
        s += a[i]
        t += b[i]
        u += c[i]
        v += d[i]
    return (s + t) + (u + v)


def timings(
    name: str, kernel: Callable, given: Sequence[tuple], work: Sequence[int], repeats: int
) -> list:
    """A Timing of a kernel with each of `given`, whose `work` is that of a call."""
    how = {"name": name, "repeats": repeats}
    return [
        measure(functools.partial(kernel, *arguments), work=n, **how)
        for arguments, n in zip(given, work, strict=True)
    ]


def sizes(largest: int = LARGEST) -> list[int]:
    """Sizes of arrays in bytes, from 4 KiB: each about half as large again as the one before."""
    powers = [1 << n for n in range(12, largest.bit_length())]
    return sorted({*powers, *(size * 3 // 2 for size in powers[:-1])})


def reading(many: Sequence[int], repeats: int = 9) -> list[Timing]:
    """Reading arrays of so many bytes from one end to the other; `work` is the bytes of a call."""
    given = [(ones(size // 4), max(1, (1 << 20) // size)) for size in many]
    return timings("reading", read_all, given, [a.nbytes * n for a, n in given], repeats)


def following(follow: Callable, many: Sequence[int], repeats: int = 9) -> list[Timing]:
    """Following a random path through all cache lines of so many bytes; `work` is its steps."""
    given = [(path(size), 10_000) for size in many]
    return timings("following", follow, given, [n for _, n in given], repeats)


def path(size: int) -> np.ndarray:
    """An array of `size` bytes that holds, at the start of each cache line, where to go next.

    The path visits all lines in random order and ends where it began: no prefetcher can guess it.
    """
    each = LINE // 8
    order = np.random.default_rng(0).permutation(size // LINE).astype(np.uint64) * np.uint64(each)
    places = np.zeros(size // 8, np.uint64)
    places[order] = np.roll(order, -1)
    return places


def adding(n: int = 4096, repeats: int = 15) -> dict[str, Timing]:
    """Adding up n numbers in one sum, two and four; `work` is n."""
    a = np.ones(n, np.float32)
    kernels = {"1 sum": (1, add_up_1), "2 sums": (2, add_up_2), "4 sums": (4, add_up_4)}
    calls = {name: functools.partial(f, *a.reshape(k, -1)) for name, (k, f) in kernels.items()}
    return compare(calls, repeats=repeats, work=n)


def striding(touch: Callable, strides: Sequence[int], repeats: int = 9) -> list[Timing]:
    """Reading every `stride`-th float32 of a large array; `work` is how many are read."""
    a = np.ones(LARGEST // 4, np.float32)
    given = [(a, stride) for stride in strides]
    return timings("striding", touch, given, [-(-a.size // n) for n in strides], repeats)


def page_times(n_pages: int = 4096, repeats: int = 9) -> dict[str, Timing]:
    """The time of a write to a page of 4 KiB: the first that it ever sees, and a later one."""
    samples = {"first write": [], "later write": []}
    for _ in range(few(repeats)):
        pages = np.frombuffer(mmap.mmap(-1, n_pages * 4096), np.uint8)  # fresh from the system
        write = functools.partial(pages[::4096].fill, 1)
        for times in samples.values():
            times.append(machine.seconds_of(write) / n_pages)
    return {name: Timing(name, tuple(times)) for name, times in samples.items()}


def branch_times(roots_below: Callable, n: int = 100_000, repeats: int = 15) -> dict[str, Timing]:
    """The same condition, true for half of n numbers: as they come, and after sorting them."""
    a, half = np.random.default_rng(0).random(n, np.float32), np.float32(0.5)
    orders = {"in random order": a, "sorted": np.sort(a)}
    calls = {name: functools.partial(roots_below, group, half) for name, group in orders.items()}
    return compare(calls, repeats=repeats, work=n)


def on_cores(counts: Sequence[int], size: int, repeats: int = 9) -> list[Timing]:
    """The time of an array's worth of reading where each of n threads reads one of `size` bytes."""
    arrays = [ones(size // 4) for _ in range(max(counts))]
    times = max(1, LARGEST // size)

    def read(n):
        for _ in threads.map(lambda a: read_all(a, times), arrays[:n]):
            pass

    with ThreadPoolExecutor(max(counts)) as threads:
        calls = {str(n): functools.partial(read, n) for n in counts}
        result = compare(calls, repeats=repeats)
    return [Timing("reading", tuple(s / n for s in result[str(n)].samples)) for n in counts]
