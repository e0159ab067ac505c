"""Learning over several seeds: every run is drawn, so that a difference can be told from luck."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.show.style import colors, figure, label_ends


@figure
def accuracy(runs: Mapping[str, Sequence[Sequence[Mapping]]]) -> Axes:
    """Draw the test accuracy over epochs: thin lines are seeds, thick ones their median.

    `runs` holds, by name, the histories of `train` with one seed each, of equal length.
    """
    _, ax = plt.subplots(figsize=(7, 4))
    labels = []
    for color, (name, histories) in zip(colors(list(runs)), runs.items(), strict=True):
        epochs = [row["epoch"] for row in histories[0]]
        lines = np.array([[row["test_accuracy"] for row in rows] for rows in histories])
        ax.plot(epochs, lines.T, color=color, linewidth=0.9, alpha=0.6)
        middle = np.median(lines, axis=0)
        ax.plot(epochs, middle, "o-", color=color, linewidth=2.5)
        labels.append((epochs[-1], middle[-1], f"{name} {middle[-1]:.1%}", color))
    ax.set(xlabel="epoch", ylabel="test accuracy", xticks=epochs)
    ax.yaxis.set_major_formatter("{x:.0%}")
    label_ends(ax, labels)
    return ax
