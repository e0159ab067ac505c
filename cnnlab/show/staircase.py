"""What a machine does at every size: bandwidth and latency, with the sizes of its caches."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.show.style import ERRORS, GREY, OTHERS, measured, note


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
