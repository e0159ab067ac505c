"""Sparse gradients as pictures: how sums fill up, what they take, and what is learnt of them."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from cnnlab.bench.streams import filled
from cnnlab.show.style import GREY, aside, colors, figure, label_ends

HALF = 0.5  # of the places taken: there a stream of 32-bit places is as long as the array


@figure
def filling(
    densities: Sequence[float], ranks: Sequence[int], counted: Mapping[str, Sequence[float]]
) -> Axes:
    """Draw the share of places taken in a sum over the ranks: predicted lines, counted dots.

    `counted` has by name the shares for each of `ranks`. Above the dashed line the whole array is
    the shorter message.
    """
    _, ax = plt.subplots(figsize=(8, 3.6))
    labels = []
    names = [f"{density:.1%} each" for density in densities]
    shades = colors([*names, *counted])
    for density, name, color in zip(densities, names, shades, strict=False):
        line = [filled(density, p) for p in ranks]
        ax.plot(ranks, line, color=color, linewidth=1.6)
        labels.append((ranks[-1], line[-1], name, color))
    marks = "osD^"
    for (name, of), color, mark in zip(counted.items(), shades[len(names) :], marks, strict=False):
        ax.plot(ranks, of, mark, color=color, markersize=5, label=name)
    ax.axhline(HALF, color=GREY, linestyle="--", linewidth=1.2)
    ax.set(xscale="log", xlabel="ranks", ylabel="share of places taken", ylim=(0, 1))
    ax.set_xticks(ranks, [str(p) for p in ranks])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(frameon=False, loc="upper left")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def by_ranks(found: Mapping[str, Mapping[int, tuple[float, float]]]) -> Axes:
    """Draw what a sum takes over the ranks, by way: bytes that a rank sends, and virtual seconds.

    `found` is what `bench.sparse_sums.sums` returns.
    """
    _, both = plt.subplots(1, 2, figsize=(8.4, 3.6))
    ways = zip(found.items(), colors(list(found)), strict=True)
    for (way, of), color in ways:
        for ax, values in zip(both, zip(*of.values(), strict=True), strict=True):
            ax.plot(list(of), values, "o-", color=color, markersize=4, label=way)
    for ax, what in zip(both, ("bytes that a rank sends", "virtual seconds"), strict=True):
        ranks = list(next(iter(found.values())))
        ax.set(xscale="log", yscale="log", xlabel="virtual ranks", ylabel=what)
        ax.set_xticks(ranks, [str(p) for p in ranks])
        ax.minorticks_off()
    both[0].legend(frameon=False, fontsize=8)
    return both[0]


@figure
def by_density(
    found: Mapping[str, Mapping[float, Sequence[float]]], whole: Mapping[str, Sequence[float]]
) -> Axes:
    """Draw the test accuracy over the density: dots are seeds, lines their means.

    Dashed lines are trainings that send everything, `whole`, by name.
    """
    _, ax = plt.subplots(figsize=(8, 4))
    labels = []
    shades = dict(zip(found, colors(list(found)), strict=True))
    for k, (way, of) in enumerate(found.items()):
        means = [sum(ends) / len(ends) for ends in of.values()]
        for density, ends in of.items():
            x = density * aside(k, len(found))
            ax.plot([x] * len(ends), ends, "o", color=shades[way], markersize=4)
        ax.plot(list(of), means, color=shades[way], linewidth=2)
        labels.append((list(of)[-1], means[-1], way, shades[way]))
    for name, ends in whole.items():
        mean = sum(ends) / len(ends)
        ax.axhline(mean, color=GREY, linestyle="--", linewidth=1.2)
        labels.append((min(min(of) for of in found.values()), mean, name, GREY))
    ax.set(xscale="log", ylabel="test accuracy")
    ax.set_xlabel("share of the numbers that a rank sends, after any warm-up")
    ax.invert_xaxis()
    densities = sorted({density for of in found.values() for density in of})
    ax.set_xticks(densities, [f"{density:.1%}" for density in densities])
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.minorticks_off()
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax
