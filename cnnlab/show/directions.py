"""Optimisers as pictures: the ways they take down a valley, and what each rate is worth."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.show.style import GREY, INK, aside, colors, figure, label_ends


@figure
def paths(steepness: tuple[float, float], places: Mapping[str, np.ndarray]) -> Axes:
    """Draw the ways that optimisers take down a valley, ½ Σ steepness w².

    `places` holds, by name, the places (T, 2) of each; every step is a dot.
    """
    fig, every = plt.subplots(2, -(-len(places) // 2), figsize=(8, 3.8), sharex=True, sharey=True)
    reach = 1.15 * np.abs([np.abs(way).max(0) for way in places.values()]).max(0)
    reach = np.minimum(reach, 3 * np.abs(next(iter(places.values()))[0]))  # of what flies off
    x, y = np.meshgrid(*(np.linspace(-r, r, 61) for r in reach))
    height = (steepness[0] * x**2 + steepness[1] * y**2) / 2
    levels = height.max() * np.geomspace(3e-3, 1, 6)
    panels = every.flat[: len(places)]
    for ax, (name, way), color in zip(panels, places.items(), colors(list(places)), strict=True):
        ax.contour(x, y, height, levels, colors=GREY, linewidths=0.6, alpha=0.7)
        ax.plot(*way.T, "o-", color=color, markersize=2.5, linewidth=1)
        ax.plot(0, 0, "+", color=INK)
        ax.set_title(name, fontsize=10, color=color)
        ax.set(xlim=(-reach[0], reach[0]), ylim=(-reach[1], reach[1]))
        ax.grid(visible=False)
    for ax in every.flat[len(places) :]:
        ax.set_axis_off()
    fig.supxlabel("$w_0$", fontsize=9)
    fig.supylabel("$w_1$", fontsize=9)
    return every.flat[0]


@figure
def accuracy_by_rate(found: Mapping[str, Mapping[float, tuple[float, ...]]]) -> Axes:
    """Draw the accuracy that each rate leads to: dots are seeds, lines their means."""
    _, ax = plt.subplots(figsize=(8, 4))
    labels = []
    for k, (color, name) in enumerate(zip(colors(list(found)), found, strict=True)):
        by_rate = found[name]
        rates, means = list(by_rate), [np.mean(of) for of in by_rate.values()]
        for rate, of in by_rate.items():
            x = rate * aside(k, len(found))
            ax.plot([x] * len(of), of, "o", color=color, markersize=4)
        ax.plot(rates, means, color=color, linewidth=2)
        labels.append((rates[-1], means[-1], name, color))
    ax.set(xscale="log", xlabel="rate", ylabel="accuracy on images held out")
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax
