"""A picture of claimed times against the least that they can be."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from cnnlab.bench.measure import in_words
from cnnlab.show.style import GREY, INK, OTHERS, WRONG, as_rows, figure, note

FAR = 1.2  # a bound is made of a few figures, each of them rounded


@figure
def lower_bounds(claimed: Mapping[str, float], bounds: Mapping[str, Mapping[str, float]]) -> Axes:
    """Draw claimed seconds, a row each, and their lower bounds by name, on a logarithmic axis.

    A claim is a dot, orange where it is far below a bound; a bound is a line with its name.
    """
    _, ax = plt.subplots(figsize=(8, 1.2 + 0.85 * len(claimed)))
    names = list(claimed)
    every = [*claimed.values(), *(t for row in bounds.values() for t in row.values())]
    ax.set(xscale="log", xlim=(min(every) / 3, 30 * max(every)), xlabel="seconds for an image")
    for y, name in enumerate(names):
        worst = max(bounds[name].values())
        ax.plot(claimed[name], name, "o", color=WRONG if FAR * claimed[name] < worst else OTHERS[0])
        said = f"claimed {in_words(claimed[name])}"
        note(ax, said, (claimed[name], y), (0, 12), ha="center", fontsize=8, color=INK)
        for k, (what, seconds) in enumerate(sorted(bounds[name].items(), key=lambda row: row[1])):
            ax.plot([seconds, seconds], [y - 0.12, y + 0.2], color=GREY, lw=1.4)
            text = f"{what} {in_words(seconds)}"
            note(ax, text, (seconds, y + 0.2), (0, -9 - 9 * (k % 2)), ha="center", fontsize=7)
    as_rows(ax, names).set_ylim(len(names) - 0.4, -0.6)
    return ax
