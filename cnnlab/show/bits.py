"""Compressors as pictures: what arrives, how fast they are, when they pay, what is learnt."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from cnnlab.bench.bits import Cost, crossover
from cnnlab.bench.measure import Timing
from cnnlab.show.style import GREY, INK, as_rows, colors, figure, label_ends, measured, note


@figure
def arrivals(found: Mapping[str, np.ndarray], sent: float) -> Axes:
    """Draw the mean of what has arrived of one number over the messages, and the number itself."""
    _, ax = plt.subplots(figsize=(6.5, 2.6))
    labels = []
    for (name, of), color in zip(found.items(), colors(list(found)), strict=True):
        n = np.arange(1, len(of) + 1)
        means = np.cumsum(of, dtype=np.float64) / n
        ax.plot(n, means, color=color, linewidth=1.5)
        labels.append((n[-1], means[-1], name, color))
    ax.axhline(sent, color=GREY, linestyle="--", linewidth=1.2)
    labels.append((n[-1], sent, "what was sent", GREY))
    ax.set(xscale="log", xlabel="messages", ylabel="mean of what arrived")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def walks(found: Mapping[str, np.ndarray], goal: float) -> Axes:
    """Draw where each way has gone after so many steps, and where the mean gradient leads."""
    _, ax = plt.subplots(figsize=(6.5, 2.6))
    labels = []
    for k, ((name, of), color) in enumerate(zip(found.items(), colors(list(found)), strict=True)):
        width = 1.5 * (len(found) - k)  # so that one shows under the next
        ax.plot(of, color=color, linewidth=width)
        labels.append((len(of) - 1, of[-1], name, color))
    ax.plot([0, len(of) - 1], [0, goal], "--", color=INK, linewidth=1.2)
    labels.append((len(of) - 1, goal, "the mean gradient", INK))
    ax.set(xlabel="steps", ylabel="x")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@measured
def speeds(
    found: Mapping[str, Mapping[str, Timing]], needed: Mapping[str, float], *, link: str
) -> Axes:
    """Draw GB/s of float32 encoded and decoded, and what pays on a link of that name.

    The first of `found` is there for comparison: a copy. `needed`, by way, is in bytes a second.
    """
    copy, *names = found
    _, ax = plt.subplots(figsize=(7, 1.4 + 0.4 * len(names)))
    y = np.arange(len(names))
    parts = {"encode": -0.19, "decode": 0.19}
    for (do, shift), color in zip(parts.items(), colors(list(parts)), strict=True):
        rates = [found[name][do].rate / 1e9 for name in names]
        ax.plot(rates, y + shift, "o", color=color, label=do)
    marks = [needed[name] / 1e9 for name in names]
    ax.plot(marks, y, "|", color=INK, markersize=20, markeredgewidth=2, label=f"pays on {link}")
    most = found[copy]["encode"].rate / 1e9
    ax.axvline(most, color=GREY, linestyle="--", linewidth=1.2, label=f"{copy}: {most:.3g}")
    for place, name, mark in zip(y, names, marks, strict=True):
        does = ", ".join(f"{do} {found[name][do].rate / 1e9:.3g}" for do in parts)
        at = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 8}
        ax.annotate(f"{does}\npays from {mark:.3g}", (1.02, place), **at)
    ax.set_yticks(y, names)
    ax.set(xscale="log", xlabel="GB/s of float32 on one core")
    low, high = ax.get_xlim()
    low = min(low, min(marks) / 2)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_xlim(low, high)
    ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=8)
    return as_rows(ax, names)


@measured
def sums(
    costs: Mapping[str, Cost], found: Mapping[float, Mapping[str, Sequence[float]]], n_ranks: int
) -> Axes:
    """Draw seconds of a sum over the bandwidth: lines are predicted, dots measured, and joined.

    At a star, the first way is predicted to catch up. `costs` and `found` are those of
    `bench.bits.sums`.
    """
    _, ax = plt.subplots(figsize=(6.5, 3.4))
    rates, labels = sorted(found), []
    fine = np.geomspace(rates[0], rates[-1], 60)
    first = next(iter(costs))
    for (way, cost), color in zip(costs.items(), colors(list(costs)), strict=True):
        line = 1e3 * np.array([cost.seconds(n_ranks, rate) for rate in fine])
        medians = 1e3 * np.array([np.median(found[rate][way]) for rate in rates])
        ax.plot(fine / 1e6, line, color=color, linewidth=1.2)
        ax.plot(np.array(rates) / 1e6, medians, "o:", color=color, markersize=4, linewidth=0.8)
        labels.append((fine[-1] / 1e6, line[-1], way, color))
        at = crossover(costs[first], cost, n_ranks) if way != first else np.inf
        if rates[0] < at < rates[-1]:
            ax.plot(at / 1e6, 1e3 * cost.seconds(n_ranks, at), "*", color=color, markersize=14)
    ax.set(xscale="log", yscale="log", xlabel="bandwidth (MB/s)", ylabel="ms a sum")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def accuracy_by_bits(found: Mapping[str, tuple[float, Sequence[float]]]) -> Axes:
    """Draw the test accuracy over the bits a number; rings are seeds, grey where none learns."""
    _, ax = plt.subplots(figsize=(6.5, 3.2))
    ax.set(xscale="log", xlabel="bits sent for a number", ylabel="test accuracy", ylim=(-0.12, 1))
    ax.set_xlim(0.7, 45)
    ax.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.figure.canvas.draw()  # limits are final now
    for (name, (bits, ends)), color in zip(found.items(), colors(list(found)), strict=True):
        color = color if max(ends) > 0.5 else GREY
        ax.plot([bits] * len(ends), ends, "o", color=color, fillstyle="none")
        below(ax, name, (bits, min(ends)), color)
    return ax


def below(ax: Axes, text: str, at: tuple[float, float], color: str) -> None:
    """Write text below a point, as far down as it must be to touch no text that is there.

    The limits of the axes must be final.
    """
    there = [other.get_window_extent() for other in ax.texts]
    note(ax, text, at, (0, -14), ha="center", fontsize=8, color=color)
    while any(ax.texts[-1].get_window_extent().overlaps(box) for box in there):
        ax.texts[-1].xyann = 0, ax.texts[-1].xyann[1] - 2
