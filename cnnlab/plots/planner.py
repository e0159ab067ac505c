"""Plans as pictures: beside what was seen, and over the bandwidth of the network."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.measure.planner.plan import WAYS, Plan
from cnnlab.plots.style import GREY, INK, colors, figure, label_ends

MARKERS = "os^Dv<>P"  # there are more families than colours
Pairs = Mapping[str, tuple[float, float]]  # by way: seconds as planned, and as they were


@figure
def planned_and_seen(worlds: Mapping[str, Pairs], filled: str = "") -> Sequence[Axes]:
    """Draw the seconds of steps that were seen over those planned: a panel for each world.

    On the dashed line a plan is right; the band reaches to twice and half of that. Each family
    has a colour and a mark; the first is the base, and black. Marks are `filled` for the pairs
    whose names begin so, and hollow for others.
    """
    _, axes = plt.subplots(1, len(worlds), figsize=(8, 4.5), squeeze=False)
    families = list(dict.fromkeys(family(name) for of in worlds.values() for name in of))
    for ax, (title, pairs) in zip(axes[0], worlds.items(), strict=True):
        planned, seen = 1e3 * np.array(list(pairs.values())).T
        ends = np.array([min(*planned, *seen) / 1.3, 1.3 * max(*planned, *seen)])
        ax.fill_between(ends, ends / 2, 2 * ends, color=GREY, alpha=0.15, linewidth=0)
        ax.plot(ends, ends, "--", color=INK, linewidth=1.2)
        looks = zip(families, [INK, *colors(families[1:])], cycle(MARKERS), strict=False)
        for name, color, marker in looks:
            mine = [k for k, way in enumerate(pairs) if family(way) == name]
            full = [k for k in mine if list(pairs)[k].startswith(filled)]
            look = {"color": color, "alpha": 0.8, "linestyle": "", "marker": marker}
            ax.plot(planned[mine], seen[mine], fillstyle="none", **look)
            ax.plot(planned[full], seen[full], label=name, **look)
        ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
        ax.set(xlabel="planned, ms a step", ylabel="seen, ms a step")
        ax.set_title(title, fontsize=10)
        ticks = [
            n * 10.0**k for k in range(-3, 5) for n in (1, 3) if ends[0] < n * 10.0**k < ends[1]
        ]
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
    axes[0, 0].legend(loc="upper left", fontsize=8)
    return axes


def family(name: str) -> str:
    """What has one colour, of a name such as "lenet5: data"."""
    return WAYS[name.rpartition(": ")[2]].family


@figure
def seconds_over_bandwidth(
    bandwidths: Sequence[float], seconds: Mapping[str, Sequence[float]]
) -> Axes:
    """Draw the seconds to an accuracy over the bandwidth of the links, fast ones first.

    Those that are somewhere first have a colour, and are thick there.
    """
    _, ax = plt.subplots(figsize=(8, 5))
    names = [n for n, of in seconds.items() if np.isfinite(of).all()]
    table, mega = np.array([seconds[n] for n in names]), np.array(bandwidths) / 1e6
    best, labels = table.argmin(0), []
    winners = [name for k, name in enumerate(names) if k in best]
    color = dict.fromkeys(names, GREY) | dict(zip(winners, colors(winners), strict=True))
    for k, name in enumerate(names):
        ax.plot(mega, table[k], color=color[name], linewidth=1.2, zorder=2 + (name in winners))
        first = np.where(best == k, table[k], np.nan)
        ax.plot(mega, first, "o-", color=color[name], linewidth=6, markersize=4, alpha=0.5)
        labels.append((mega[0], table[k, 0], name, color[name]))
    ax.set(xscale="log", yscale="log", xlabel="bandwidth, MB/s: from fast to slow")
    ax.set_ylabel("seconds, planned")
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xlim(mega[-1], mega[0])
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


def pairs(plans: Mapping[str, Plan], seconds: Mapping[str, float], of: str = "") -> Pairs:
    """Seconds as planned and as seen, of the ways that were, by "of: way"."""
    return {f"{of}: {n}": (plans[n].seconds, seconds[n]) for n in plans if n in seconds}
