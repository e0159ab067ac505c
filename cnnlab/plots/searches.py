"""Searches as pictures: who leads over the epochs spent, ways through the toy problem, networks."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.measure.search_race import bands, leaders
from cnnlab.measure.search_toy import tracks
from cnnlab.plots.style import GREY, INK, OTHERS, as_rows, colors, figure

Run = Sequence  # of `training.search.Done`, as `run` returns them


@figure
def race(series: Mapping[str, Sequence[Run]], low: float = 0.8) -> np.ndarray:
    """Draw the best accuracy on held-out images over the epochs trained, a panel for each method.

    The line is the median of the seeds, the band goes from the lowest to the highest; the first
    method is in grey in every other panel. The axis begins at `low`.
    """
    _, axes = plt.subplots(1, len(series), figsize=(8, 2.5), sharey=True)
    curves = {name: bands(runs) for name, runs in series.items()}
    base = next(iter(curves))
    for ax, color, name in zip(axes, colors(list(series)), series, strict=True):
        for of, look in {base: GREY, name: color}.items():
            epochs, scores = curves[of]
            epochs = np.append(epochs, 1.06 * epochs[-1])  # so that the last step is seen
            kept = np.c_[scores, scores[:, -1]]
            band = kept.min(0).clip(low), kept.max(0).clip(low)
            ax.fill_between(epochs, *band, step="post", color=look, alpha=0.2, linewidth=0)
            ax.step(epochs, np.median(kept, axis=0), where="post", color=look, linewidth=2)
        ax.set(xlabel="epochs trained", ylim=(low, 1))
        ax.set_title(f"{name}\n{np.median(scores[:, -1]):.1%}", fontsize=9, color=color)
    axes[0].set_ylabel(f"held out, from {low:.0%} on")
    axes[0].yaxis.set_major_formatter("{x:.0%}")
    return axes


@figure
def toy(variants: Mapping[str, Run]) -> np.ndarray:
    """Draw the paths of two members through the toy problem, a panel for each variant.

    The star is the best point; the number is the best score on the path.
    """
    _, axes = plt.subplots(1, len(variants), figsize=(9, 2.7), sharey=True)
    starts = "began with h = (1, 0)", "with h = (0, 1)"
    for ax, (name, done) in zip(axes, variants.items(), strict=True):
        for way, color, start in zip(tracks(done), OTHERS, starts, strict=False):
            ax.plot(*way.T, "-", color=color, linewidth=1.2, label=start)
        ax.scatter(0, 0, 60, INK, marker="*", clip_on=False, zorder=3)
        best = max(one.score for one in done)
        ax.set(title=f"{name}\n{best:.3f}", xlabel="θ₀", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.set_xticks([0, 0.5, 1])
        ax.title.set_fontsize(9)
    axes[0].set_ylabel("θ₁")
    look = {"frameon": False, "fontsize": 9, "ncols": 2}
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", **look)
    return axes


@figure
def validation_against_test(series: Mapping[str, Sequence[Run]]) -> Axes:
    """Draw the winner of each run: its accuracy on held-out images, and on test images.

    A line joins the two of one winner.
    """
    _, ax = plt.subplots(figsize=(7, 0.8 + 0.1 * sum(map(len, series.values()))))
    for row, (color, runs) in enumerate(zip(colors(list(series)), series.values(), strict=True)):
        last = [leaders(done)[-1] for done in runs]
        for at, one in zip(np.linspace(-0.35, 0.35, len(last)), last, strict=True):
            ax.plot([one.score, one.test], [row + at, row + at], color=GREY, linewidth=0.8)
            ax.plot(one.score, row + at, "o", color=color, markersize=5)
            ax.plot(one.test, row + at, "o", color=color, markersize=7, fillstyle="none")
    ax.plot([], [], "o", color=INK, label="held-out images")
    ax.plot([], [], "o", color=INK, fillstyle="none", label="test images")
    look = {"frameon": False, "borderaxespad": 0, "fontsize": 9}
    ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1.01), **look)
    ax.set(xlabel="accuracy")
    ax.set_yticks(range(len(series)), list(series))
    ax.xaxis.set_major_formatter("{x:.1%}")
    return as_rows(ax, list(series))
