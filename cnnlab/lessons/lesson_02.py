"""The exercises of lesson 02."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.plots.style import colors, figure, label_ends


@kinds.number(
    "The first window begins at row 0. Where does the last one begin, if it must not hang over?",
    "It begins at row 24 − 4 = 20. How many even rows are there from 0 to 20?",
)
def rows_at_stride_2():
    """Windows then overlap, and the fully connected layer would need other weights."""
    return (24 - 4) // 2 + 1


@kinds.number(
    "How many numbers are in six maps of 24 × 24? And how many bytes is a float32?",
    "3,456 numbers, of 4 bytes each.",
)
def bytes_of_the_maps():
    """64 images make 64 times as much: compare that with your caches."""
    return 4 * 6 * 24 * 24


@kinds.kernel(
    "pool_backward_weights",
    "dw[c, k, l] multiplies each dz[n, c, p, q] by the one input that tap (k, l) saw there.",
    "For tap (k, l) those inputs are the slice x[:, :, k::stride, l::stride], cut to P rows and Q "
    "columns. Multiply by dz, and sum over images, rows and columns.",
)
def weights_gradient(x, dz, dw, stride=4):
    """The slice holds what one tap saw in every window: that is where the stride goes."""
    P, Q = dz.shape[2:]
    for k in range(dw.shape[1]):
        for l in range(dw.shape[2]):
            seen = x[:, :, k::stride, l::stride][:, :, :P, :Q]
            dw[:, k, l] = (dz * seen).sum(axis=(0, 2, 3))


# --- learning over several seeds ------------------------------------------------------------------


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
