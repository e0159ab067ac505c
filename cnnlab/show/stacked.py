"""Times in parts, one bar above the other: where each step of a ladder spends its time."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.bench.measure import in_words, time_unit
from cnnlab.show.style import as_rows, measured, part_colors


@measured
def parts(times: Mapping[str, Mapping[str, float]], *, per: str = "call") -> Axes:
    """Draw stacked bars of seconds per `per`, in absolute lengths, with the total at their ends."""
    scale, unit = time_unit(max(sum(each.values()) for each in times.values()))
    names, kinds = list(times), dict.fromkeys(part for each in times.values() for part in each)
    _, ax = plt.subplots(figsize=(7.5, 1.5 + 0.45 * len(names)))
    left = np.zeros(len(names))
    for kind, color in zip(kinds, part_colors(kinds), strict=True):
        length = np.array([scale * each.get(kind, 0.0) for each in times.values()])
        bars = ax.barh(names, length, 0.66, left, color=color, label=kind, edgecolor="white")
        left = left + length
    texts = [
        f"{in_words(sum(each.values()))}: "
        + ", ".join(f"{k} {in_words(t)}" for k, t in each.items())
        for each in times.values()
    ]
    ax.bar_label(bars, texts, padding=6, fontsize=8)
    ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderaxespad=0)
    ax.set(xlim=(0, 1.65 * left.max()), xlabel=f"{unit} per {per}")
    return as_rows(ax, names)
