"""The launches of a training step: what each costs, which needs which, and when each is done."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch

from cnnlab.bench.launch_times import Cost, Launch
from cnnlab.bench.measure import in_words
from cnnlab.cuda.emulator.flow import levels, passed_on
from cnnlab.show.style import COLORS, GREY, INK, OTHERS, as_rows, figure, note

WAITING = "#d9d9d9"
ROW = 0.75  # inches from one row of a graph to the next


@figure
def costs(found: Sequence[Cost], *, timed: bool = False) -> Axes:
    """Draw a bar for each launch, in order: the bytes that it moves, or if `timed` its time."""
    names = [f"{number} {cost.kernel}" for number, cost in enumerate(found)]
    values = [1e6 * cost.seconds if timed else cost.moved / 1e6 for cost in found]
    whole = sum(values)
    _, ax = plt.subplots(figsize=(7.5, 0.9 + 0.28 * len(found)))
    ax.barh(names, values, 0.66, color=COLORS["device"])
    for y, (cost, value) in enumerate(zip(found, values, strict=True)):
        amount = in_words(cost.seconds) if timed else f"{value:.3g} MB"
        note(ax, f"{amount}, {value / whole:.1%}", (value, y), (5, 0), va="center", fontsize=9)
    unit = "µs, by the GPU's events" if timed else "MB moved, as if nothing were cached"
    ax.set(xlabel=unit, xlim=(0, 1.3 * max(values)))
    return as_rows(ax, names)


@figure
def needs(traces: Sequence) -> Axes:
    """Draw the launches of a step as a graph, from their traces: an arrow is an array passed on.

    A row holds launches that do not need each other; below a kernel's name, what it leaves.
    """
    passed = passed_on(traces)
    level = levels(len(traces), passed)
    rows = [[i for i, of in enumerate(level) if of == row] for row in range(1 + max(level))]
    places = {i: (column(k), y) for y, row in enumerate(rows) for k, i in enumerate(row)}
    wide = max(abs(x) for x, _ in places.values()) + 0.5
    _, ax = plt.subplots(figsize=(max(4.5, 4.4 * wide), 0.5 + ROW * len(rows)))
    for one in passed:
        (x0, y0), (x1, y1) = places[one.giver], places[one.taker]
        far = ROW * (y1 - y0)  # inches; past other rows, it bends around them
        bend = min(0.7, 1.9 / far) if far > ROW and x0 == x1 else 0
        bend *= 1 if x0 < 0 else -1
        look = {"color": OTHERS[one.giver % len(OTHERS)], "connectionstyle": f"arc3,rad={bend}"}
        ends = (x0, y0 + 0.27), (x1, y1 - 0.27)
        ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=9, **look))
    for i, (x, y) in places.items():
        left = dict.fromkeys(f"{p.array} {p.bytes:,} B" for p in passed if p.giver == i)
        box = {
            "boxstyle": "round,pad=0.35",
            "facecolor": "white",
            "edgecolor": OTHERS[i % len(OTHERS)],
        }
        text = "\n".join([f"{i} {traces[i].kernel}", *([", ".join(left)] if left else [])])
        ax.text(x, y, text, ha="center", va="center", fontsize=9, bbox=box)
    ax.set(xlim=(-wide, wide), ylim=(len(rows) - 0.55, -0.5))
    ax.axis("off")
    return ax


def column(k: int) -> int:
    """Where the launch number `k` of a row stands: in the middle, left, right, further left, …"""
    return (k + 1) // 2 * (-1 if k % 2 else 1)


@figure
def over_time(found: Mapping[str, Sequence[Launch]]) -> np.ndarray:
    """Draw what host and device do when: a panel for each way, a line for each launch between.

    A line leads from the end of asking to the begin of the work: the flatter, the longer it queued.
    """
    _, axes = plt.subplots(len(found), 1, figsize=(8, 0.6 + 1.35 * len(found)), squeeze=False)
    for ax, (name, launches) in zip(axes[:, 0], found.items(), strict=True):
        panel(ax, launches)
        end = launches[-1].end - launches[0].asked
        ax.set_title(f"{name}: {in_words(end)}", fontsize=10, loc="left")
    colors = {
        "host asks": INK,
        "host waits": WAITING,
        "device works": COLORS["device"],
    }
    keys = [Patch(color=color, label=label) for label, color in colors.items()]
    keys.append(Line2D([], [], color=GREY, linewidth=0.7, label="queued"))
    look = {"frameon": False, "fontsize": 8, "borderaxespad": 0, "ncols": 4}
    look |= {"columnspacing": 1, "handlelength": 1.2}
    axes[0, 0].legend(handles=keys, loc="lower right", bbox_to_anchor=(1, 1.02), **look)
    own = "; each panel has its own scale" if len(found) > 1 else ""
    axes[-1, 0].set_xlabel(f"µs since the host began to ask{own}")
    return axes[:, 0]


def panel(ax: Axes, launches: Sequence[Launch]) -> None:
    """One way to make the launches of a step: the host above, the device below."""
    start, following = launches[0].asked, [*launches[1:], None]
    for one, after in zip(launches, following, strict=True):
        asked, returned, begin, end = (1e6 * (time - start) for time in one[1:])
        waited = 1e6 * ((after.asked if after else one.end) - start)
        bar = {"height": 0.5, "edgecolor": "white", "linewidth": 0.4}
        ax.barh(0, waited - returned, left=returned, color=WAITING, height=0.5)
        ax.barh(0, returned - asked, left=asked, color=INK, **bar)
        ax.barh(1, end - begin, left=begin, color=COLORS["device"], **bar)
        ax.plot([returned, begin], [0.25, 0.75], color=GREY, linewidth=0.7)
    ax.set_yticks([0, 1], ["host", "device"])
    as_rows(ax, range(2))
