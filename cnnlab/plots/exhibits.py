"""Exhibits that mislead, as bars."""

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from cnnlab.measure.fooling import Exhibit
from cnnlab.plots.style import OTHERS, as_rows, figure


@figure
def exhibits(shown: Sequence[Exhibit]) -> Sequence[Axes]:
    """Draw claims with the bars that are shown for them, numbered, two in a row."""
    n_rows = -(-len(shown) // 2)
    _, axes = plt.subplots(n_rows, 2, figsize=(8, 1.75 * n_rows), squeeze=False)
    for k, (ax, exhibit) in enumerate(zip(axes.flat, shown, strict=True)):
        names = list(exhibit.bars)
        values = [exhibit.bars[name] for name in names]
        ax.barh(names, values, color=OTHERS[k % len(OTHERS)], height=0.6)
        for row, value in enumerate(values):
            ax.annotate(f" {value:.3g}", (value, row), va="center", fontsize=9)
        ax.set_xlim(exhibit.low, exhibit.low + 1.2 * (max(values) - exhibit.low))
        ax.locator_params(axis="x", nbins=6)
        ax.set_xlabel(exhibit.unit, fontsize=9)
        ax.set_title(textwrap.fill(f"{k + 1}  {exhibit.claim}", 44), fontsize=10, loc="left")
        as_rows(ax, names)
    return axes
