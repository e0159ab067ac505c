"""The exercises of lesson 00b."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import inputs, kinds
from cnnlab.kernels.variants.probes import add_up_4
from cnnlab.plots.style import ERRORS, GREY, OTHERS, measured, note


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
    import numpy as np

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
