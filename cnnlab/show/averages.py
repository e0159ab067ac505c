"""Ranks that average models, as pictures: who hears whom, what shrinks, and what it is worth."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.show.style import GREY, INK, colors, figure, label_ends, note


@figure
def mixing(graphs: Mapping[str, np.ndarray]) -> Sequence[Axes]:
    """Draw mixing matrices: row by row, whose models a rank averages, and with which weights."""
    _, axes = plt.subplots(1, len(graphs), figsize=(2.4 * len(graphs), 2.9), squeeze=False)
    for ax, (name, weights) in zip(axes[0], graphs.items(), strict=True):
        ax.imshow(np.where(weights > 0, weights, np.nan), cmap="Blues", vmin=0, vmax=0.6)
        low, high = (f"1/{1 / w:.0f}" for w in (weights[weights > 0].min(), weights.max()))
        ax.set_title(f"{name}, {low} " + ("each" if low == high else f"to {high}"), fontsize=10)
        ax.set(xlabel="model of rank", xticks=[0, len(weights) - 1], yticks=[0, len(weights) - 1])
        ax.grid(visible=False)
    axes[0, 0].set_ylabel("averaged by rank")
    return axes


@figure
def shrinking(
    series: Mapping[str, Sequence[float]], factors: Mapping[str, float], *, x: str, y: str
) -> Axes:
    """Draw sizes that shrink or grow step by step, and dashed, from the middle on, as predicted.

    `factors` says by how much each of `series` changes in a step: 0 is told, as a logarithm cannot
    show it. What has vanished is not drawn.
    """
    _, ax = plt.subplots(figsize=(8, 4))
    labels = []
    for color, (name, of) in zip(colors(list(series)), series.items(), strict=True):
        sizes = np.array(of, float)
        there = np.flatnonzero(sizes > 1e-12 * sizes[0])
        ax.plot(there, sizes[there], "o-", color=color, markersize=3, linewidth=1.2)
        last = int(there[-1])
        told = f"× {factors[name]:.3f}" if factors[name] else f"0 after {last + 1} {x}"
        labels.append((last, sizes[last], f"{name}: {told}", color))
        if last > 5:
            steps = np.arange(last // 2, last + 1)
            line = sizes[steps[0]] * factors[name] ** (steps - steps[0])
            ax.plot(steps, line, "--", color=INK, linewidth=1.2)
    ax.set(yscale="log", xlabel=x, ylabel=y)
    ax.minorticks_off()
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def from_consistent_to_independent(points: Mapping[str, tuple[float, float]], level: float) -> Axes:
    """Draw accuracy over the bytes that a rank sends in a step; at the left, nothing is sent.

    `points` has (bytes, accuracy) by name: the first word is a family, and has a colour. The dashed
    line is at `level`, what one rank of them has learned alone.
    """
    _, ax = plt.subplots(figsize=(8, 5.4))
    families = list(dict.fromkeys(name.split()[0] for name in points))
    color = dict(zip(families, colors(families), strict=True))
    for name, (sent, accuracy) in points.items():
        own = color[name.split()[0]]
        ax.plot(sent, accuracy, "o", color=own, markersize=7)
        note(ax, name, (sent, accuracy), (6, -3), color=own, fontsize=9)
    ax.axhline(level, color=GREY, linestyle="--", linewidth=1.2)
    ax.set_xscale("symlog", linthresh=100, linscale=0.5)
    most = max(sent for sent, _ in points.values())
    ticks = [0, *(10**k for k in range(2, 9) if 10**k < 2 * most)]
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlim(-30, 3 * most + 30)
    ax.set(xlabel="bytes that a rank sends in a step", ylabel="test accuracy")
    ax.yaxis.set_major_formatter("{x:.0%}")
    return ax
