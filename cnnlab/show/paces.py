"""Paces as pictures: steps and time to an accuracy, over batches and ranks."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.show.style import GREY, OTHERS, aside, colors, figure, label_ends

Looks = Sequence  # of `training.pace.Look`, as `follow` returns them
Runs = Mapping[int, Sequence[Looks]]  # by batch, a training for each seed


@figure
def steps_to(series: Mapping[str, Runs], target: float) -> Axes:
    """Draw the steps to an accuracy over the batch; crosses are seeds that missed it.

    Lines join the medians of seeds. Along the dashed line, twice the batch takes half the steps.
    """
    _, ax = plt.subplots(figsize=(8, 4.2))
    labels, batches = [], sorted({batch for runs in series.values() for batch in runs})
    for k, (color, name) in enumerate(zip(colors(list(series)), series, strict=True)):
        runs, line, beside = series[name], [], aside(k, len(series))
        for batch, trainings in runs.items():
            for looks in trainings:
                reached = looks[-1].accuracy >= target
                look = {"color": color, "markersize": 5 if reached else 8}
                ax.plot(beside * batch, looks[-1].steps, "o" if reached else "x", **look)
            if all(looks[-1].accuracy >= target for looks in trainings):
                line.append((batch, np.median([looks[-1].steps for looks in trainings])))
        if line:
            ax.plot(*zip(*line, strict=True), color=color, linewidth=2)
        last, trainings = list(runs.items())[-1]
        labels.append((beside * last, trainings[0][-1].steps, name, color))
    first = next(iter(series.values()))
    start = np.median([looks[-1].steps for looks in first[min(first)]])
    ideal = [start * min(first) / batch for batch in batches]
    ax.plot(batches, ideal, color=GREY, linestyle="--", linewidth=1.2)
    ax.set(xscale="log", yscale="log", xlabel="images a step", ylabel=f"steps to {target:.0%}")
    ax.set_xticks(batches, [str(batch) for batch in batches])
    ax.minorticks_off()
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def accuracy_by_steps(series: Mapping[str, Sequence[Looks]]) -> Axes:
    """Draw the test accuracy over the steps taken; each line is a seed."""
    _, ax = plt.subplots(figsize=(8, 3.8))
    labels = []
    for color, (name, trainings) in zip(colors(list(series)), series.items(), strict=True):
        for looks in trainings:
            steps, found = [x.steps for x in looks], [x.accuracy for x in looks]
            ax.plot(steps, found, "o-", color=color, markersize=3, linewidth=1.2)
        labels.append((steps[-1], found[-1], name, color))
    ax.set(xlabel="steps", ylabel="test accuracy", ylim=(0.8, 1))
    ax.set_yticks([0.8, 0.85, 0.9, 0.95, 1])
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def time_to(ranks: Sequence[int], seconds: Mapping[str, Sequence[float]]) -> Axes:
    """Draw the virtual seconds to an accuracy over the ranks, a line for each way.

    The best has a star. Along the dashed line, twice the ranks take half the time of the best on
    one.
    """
    _, ax = plt.subplots(figsize=(8, 4.6))
    labels, best = [], min(seconds, key=lambda name: min(seconds[name]))
    for k, (color, (name, of)) in enumerate(
        zip(colors(list(seconds)), seconds.items(), strict=True)
    ):
        mark = "o-" if k < len(OTHERS) else "s-."  # from there on, colours come again
        ax.plot(ranks, of, mark, color=color, markersize=4)
        labels.append((ranks[-1], of[-1], name, color))
        if name == best:
            ax.plot(ranks[int(np.argmin(of))], min(of), "*", color=color, markersize=16)
    alone = min(of[0] for of in seconds.values())
    ax.plot(ranks, [alone * ranks[0] / p for p in ranks], "--", color=GREY, linewidth=1.2)
    lowest = min(map(min, seconds.values()))
    ax.set(xscale="log", yscale="log", xlabel="virtual ranks", ylabel="virtual seconds")
    ax.set_ylim(lowest / 2, None)
    ax.set_xticks(ranks, [str(p) for p in ranks])
    ax.minorticks_off()
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax
