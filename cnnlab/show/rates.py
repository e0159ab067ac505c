"""GFLOP/s over the batch: a panel for each layer, a line for each kernel, and the bounds."""

from collections.abc import Callable, Mapping
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np

from cnnlab.bench.measure import Timing
from cnnlab.show.style import GREY, INK, colors, measured

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
