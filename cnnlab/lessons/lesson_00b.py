"""The exercises of lesson 00b."""

from cnnlab.check.exercises import kinds
from cnnlab.kernels.variants.probes import add_up_4


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
        a = np.random.default_rng(n).random(n, np.float32)
        expected, got = a.sum(dtype=np.float64), mine(a.copy())
        if got is None or not np.isscalar(got) or not abs(float(got) - expected) <= 1e-5 * n:
            return f"of {n} numbers: expected {expected:.6g}, got {got}"
    return ""
