"""The exercises of lesson 40: the report's figures, and a line of arithmetic for each."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from cnnlab import data
from cnnlab.check import kinds
from cnnlab.measure.timing import in_words
from cnnlab.plots.style import GREY, INK, OTHERS, WRONG, as_rows, figure, note


@kinds.number(
    "Add up the three layers. What does the whole network take?",
    "97.700 + 5.127 + 2.129 − 102.317.",
    rtol=0.01,
)
def too_many():
    """Each layer was timed in its own network (report, section 6.3): three runs, and a fourth."""
    printed = data.report()["sequential"]
    return sum(printed["layer_seconds"].values()) - printed["epoch_seconds"]


@kinds.number(
    "Efficiency is speedup by workers.",
    "2.72047 by 2.",
    rtol=5e-3,
)
def efficiency():
    """Above 1: the parallel program does less work than its base, or its data fit a cache."""
    return data.report()["openmp"]["speedup"][0] / 2


@kinds.number(
    "Amdahl: 1 / (s + (1 − s) / p). Which s gives 1.52734 for p = 2?",
    "s = 2 / 1.52734 − 1. Now put p = 4.",
    rtol=5e-3,
)
def four_ranks():
    """Measured were 1.02. A serial part cannot do that; messages can, or too few cores."""
    serial = 2 / data.report()["mpi"]["speedup"][0] - 1
    return 1 / (serial + (1 - serial) / 4)


@kinds.number(
    "Each layer's seconds by its speedup, and then the sum.",
    "97.700 / 1083 + 5.127 / 987 + 2.129 / 5507.",
    rtol=5e-3,
)
def epoch():
    """The network's own figure is 3.00 s, thirty times as long. What took the rest?"""
    layers = data.report()["sequential"]["layer_seconds"].values()
    pairs = zip(layers, data.report()["cuda"]["layer_speedups"], strict=True)
    return sum(seconds / times for seconds, times in pairs)


@kinds.number(
    "2.129 s by 5,507 and by 60,000 is the time of an image.",
    "6.44 ns, at 1.58 cycles a nanosecond.",
    rtol=0.02,
)
def cycles():
    """Ten for a loop over 216 products, which is in the listing, and each addition takes four."""
    return data.report()["cuda"]["layer_seconds"][2] / 60_000 * 1.58e9


@kinds.number(
    "What is left of the sum if the convolution takes no time?",
    "All three layers by the two others.",
    rtol=5e-3,
)
def limit():
    """So begin with the convolution; but the network's 34 times need the other layers, too."""
    convolution, *rest = data.report()["sequential"]["layer_seconds"].values()
    return (convolution + sum(rest)) / sum(rest)


# --- a picture of claimed times against the least that they can be --------------------------------

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
