"""Ratios over a size, such as an efficiency over the batch."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.bench.measure import Ratio
from cnnlab.show.style import ERRORS, GREY, aside, colors, label_ends, measured


@measured
def ratios_by_size(
    sizes: Sequence[int], series: Mapping[str, Sequence[Ratio]], *, unit: str, ratio: str
) -> Axes:
    """Draw ratios with their intervals over sizes, and the line at 1.

    `unit` is what is counted along the axis of sizes, which is logarithmic, `ratio` the name of
    what is drawn.
    """
    _, ax = plt.subplots(figsize=(7, 3.6))
    labels = []
    for k, (name, color) in enumerate(zip(series, colors(list(series)), strict=True)):
        value, low, high = np.array([(r.value, r.low, r.high) for r in series[name]]).T
        errors = [value - low, high - value]
        x = np.array(sizes) * aside(k, len(series))
        ax.errorbar(x, value, errors, fmt="o-", color=color, markersize=4, **ERRORS)
        labels.append((x[-1], value[-1], name, color))
    ax.axhline(1, color=GREY, linestyle="--", linewidth=1.2)
    ax.set(xscale="log", xlabel=unit, ylabel=ratio)
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.set_ylim(0, None)
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax
