"""Trainings under a parameter server, as pictures: staleness, losses and throughput."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.measure.server_runs import Run
from cnnlab.plots.style import GREY, colors, figure, label_ends


@figure
def staleness(runs: Mapping[str, Run]) -> Sequence[Axes]:
    """Draw how many gradients of others the gradients have missed, a row for each run.

    Dashed: the mean. Shares are on a logarithmic axis, for the tail.
    """
    _, axes = plt.subplots(len(runs), 1, figsize=(6.5, 1 + 0.95 * len(runs)), sharex=True)
    for ax, color, (name, run) in zip(
        np.atleast_1d(axes), colors(list(runs)), runs.items(), strict=True
    ):
        missed = run.ledger.missed
        ax.bar(list(missed), [n / missed.total() for n in missed.values()], 0.9, color=color)
        ax.axvline(run.staleness, color=GREY, linestyle="--", linewidth=1.2)
        look = {"ha": "right", "va": "top", "transform": ax.transAxes, "color": color}
        words = f"{name}: {run.staleness:.1f} on average, {max(missed)} at most"
        ax.text(0.99, 0.92, words, **look)
        ax.set(yscale="log", ylabel="gradients")
        ax.yaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
        ax.grid(axis="x", visible=False)
    most = max(max(run.ledger.missed) for run in runs.values())
    ax.set(xlabel="gradients of others that one has missed", xlim=(-0.6, most + 1))
    return axes


@figure
def losses(rows: Mapping[str, Mapping[str, Run]]) -> Sequence[Axes]:
    """Draw the loss over the images learned from, left, and over virtual time, right.

    A row for each group of runs.
    """
    size = {"figsize": (6.4, 0.9 + 1.6 * len(rows)), "squeeze": False}
    _, axes = plt.subplots(len(rows), 2, sharey=True, **size)
    for row, (group, runs) in zip(axes, rows.items(), strict=True):
        for color, (name, run) in zip(colors(list(runs)), runs.items(), strict=True):
            found = [look.loss for look in run.looks]
            row[0].plot([look.images for look in run.looks], found, color=color, label=name)
            row[1].plot([1e3 * look.seconds for look in run.looks], found, color=color)
        row[0].set_title(group, fontsize=10, loc="left")
        row[0].set_ylabel("loss of an image")
        for ax in row:
            ax.set_xlim(0, None)
    axes[0][0].legend(frameon=False, fontsize=9)
    for ax, unit in zip(axes[-1], ("images", "virtual ms"), strict=True):
        ax.set_xlabel(unit)
    return axes


@figure
def throughputs(
    n_workers: Sequence[int], panels: Mapping[str, Mapping[str, Sequence[float]]], roof: float
) -> Sequence[Axes]:
    """Draw images in a virtual second over the workers, a panel for each group of lines.

    Dashed: as many times one worker's, and the roof that the server is.
    """
    _, axes = plt.subplots(
        1, len(panels), figsize=(3.5 * len(panels), 2.9), sharey=True, squeeze=False
    )
    for ax, (name, lines) in zip(axes[0], panels.items(), strict=True):
        for color, of in zip(colors(list(lines)), lines.values(), strict=True):
            ax.plot(n_workers, of, "o-", color=color, markersize=4)
        first = max(of[0] for of in lines.values())
        ideal = [min(roof, first * n / n_workers[0]) for n in n_workers]
        ax.plot(n_workers, ideal, "--", color=GREY, linewidth=1.2)
        ax.set(xscale="log", yscale="log", xlabel="workers")
        ax.set_xticks(n_workers, [str(n) for n in n_workers])
        ax.set_title(name, fontsize=10, loc="left")
        ax.minorticks_off()
    axes[0, 0].set_ylabel("images in a virtual second")
    axes[0, 0].figure.canvas.draw()  # limits are final now
    for ax, lines in zip(axes[0], panels.values(), strict=True):
        ends = zip(colors(list(lines)), lines.items(), strict=True)
        label_ends(ax, [(n_workers[-1], of[-1], name, color) for color, (name, of) in ends])
    return axes[0]
