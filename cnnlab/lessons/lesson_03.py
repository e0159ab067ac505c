"""The exercises of lesson 03."""

from collections.abc import Callable, Mapping
from itertools import cycle

import matplotlib.pyplot as plt
import numba
import numpy as np

from cnnlab.check import kinds
from cnnlab.check.verdict import number_verdict
from cnnlab.measure.timing import Timing
from cnnlab.plots.style import GREY, INK, colors, measured


def wrong_loss(answer) -> str:
    """What is wrong with a loss, at fresh small numbers and at large ones; "" if nothing is."""
    small = kinds.generator().uniform(-3, 3, 2)
    for z, t in [(small[0], 0), (small[1], 1), (40, 0), (-1000, 1), (1000, 0), (1000, 1)]:
        got, expected = answer(np.float64(z), t), np.logaddexp(0, z) - t * z
        result = number_verdict(f"at z={z:.6g}, t={t}", got, expected, 1e-6)
        if not result:
            return result.text
    return ""


@kinds.number(
    "2 · N · 1024² operations, and 4 · (1024² + 2 · 1024 · N) bytes: divide, and ask for 10.",
    "I = N · 1024 / (2 · 1024 + 4 N). From I ≥ 10 follows N · (1024 − 40) ≥ 20 · 1024. A batch is "
    "a whole number.",
)
def smallest_batch():
    """I = N · 1024 / (2 · 1024 + 4 N) ≥ 10. For 10 outputs, I stays below 5 for any batch."""
    from math import ceil

    return ceil(20 * 1024 / (1024 - 40))


@kinds.tested(
    wrong_loss,
    "For a large positive z, exp(z) overflows, and exp(-z) does not: can you take it out?",
    "log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)).",
)
def loss_from_z(z, t):
    """The exponential is never of a positive number, so it is at most 1."""
    return max(z, 0) - t * z + np.log1p(np.exp(-abs(z)))


@kinds.kernel(
    "dense_forward",
    "Four totals for images n to n + 3, and one loop over i: load w[o, i] once, use it four times.",
    "range(0, N - 3, 4) takes the images by fours. Those left over, from N - N % 4 on, need plain "
    "loops.",
)
@numba.njit
def four_images(x, w, b, z):
    """Two causes: fewer loads, and four sums that need not wait for each other."""
    N = z.shape[0]
    for n in range(0, N - 3, 4):
        for o in range(z.shape[1]):
            t0 = t1 = t2 = t3 = b[o]
            for i in range(x.shape[1]):
                weight = w[o, i]
                t0 += weight * x[n, i]
                t1 += weight * x[n + 1, i]
                t2 += weight * x[n + 2, i]
                t3 += weight * x[n + 3, i]
            z[n, o], z[n + 1, o], z[n + 2, o], z[n + 3, o] = t0, t1, t2, t3
    for n in range(N - N % 4, N):
        for o in range(z.shape[1]):
            total = b[o]
            for i in range(x.shape[1]):
                total += w[o, i] * x[n, i]
            z[n, o] = total


# --- gFLOP/s over the batch: a panel for each layer, a line for each kernel, and the bounds -------

Panel = Mapping[int, Mapping[str, Timing]]  # batch → kernel → Timing, which knows its work


@measured
def over_batch(
    panels: Mapping[str, Panel], peak: float, bounds: Mapping[str, Callable] | None = None
) -> np.ndarray:
    """Draw GFLOP/s over the batch, with intervals, under the peak of the core, in FLOP/s.

    `bounds` are those of the first panel, by name: FLOP/s over the batch, a function of an array.
    """
    _, axes = plt.subplots(1, len(panels), figsize=(10, 4.6), sharey=True, squeeze=False)
    for ax, (title, panel) in zip(axes[0], panels.items(), strict=True):
        names = list(next(iter(panel.values())))
        for name, color, mark in zip(names, colors(names), cycle("os^D"), strict=False):
            taken = {batch: timings[name] for batch, timings in panel.items() if name in timings}
            rates = [timing.rate / 1e9 for timing in taken.values()]
            ax.plot(list(taken), rates, f"{mark}-", color=color, label=name)
            for batch, timing in taken.items():
                ends = timing.work / np.array([timing.high, timing.low]) / 1e9
                ax.plot([batch, batch], ends, color=color)
        ax.axhline(peak / 1e9, color=INK, linewidth=1, label="peak of the core")
        ax.loglog()
        ax.minorticks_off()
        ax.set(xlabel="batch (images)", title=title)
        ax.set_xticks(list(panel), list(panel))
        ax.yaxis.set_major_formatter("{x:g}")
    batches = np.geomspace(*(f(next(iter(panels.values()))) for f in (min, max)), 99)
    for (name, bound), dash in zip((bounds or {}).items(), ("--", ":"), strict=False):
        axes[0, 0].plot(batches, bound(batches) / 1e9, dash, color=GREY, label=name)
    axes[0, 0].set_ylabel("GFLOP/s on one core")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="lower right")
    return axes[0]
