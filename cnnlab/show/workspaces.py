"""Workspace against time: what the ways to convolve cost, the front of plans, and the plans."""

from collections import Counter
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, LogLocator

from cnnlab.bench.convolutions import Costs
from cnnlab.bench.measure import digits, in_words
from cnnlab.bench.microbatches import Plan
from cnnlab.kernels.variants.four_ways import WAYS
from cnnlab.show.style import (
    COLORS,
    GREY,
    INK,
    OTHERS,
    as_rows,
    figure,
    label_ends,
    measured,
    note,
)

KIB, MIB = 2**10, 2**20
INKS = dict(zip(WAYS, (COLORS["vector"], *OTHERS), strict=False))  # a way looks the same everywhere


@measured
def costs(found: Costs) -> np.ndarray:
    """Draw time and workspace for each image over the size of a micro-batch, on two Axes."""
    _, axes = plt.subplots(1, 2, figsize=(10, 3.8))
    labels: tuple[list, list] = ([], [])
    for name in found.timings:
        color = INKS.get(name, INK)
        sizes = np.array(list(found.timings[name]))
        taken = list(found.timings[name].values())
        middle, low, high = 1e6 * np.array([(t.median, t.low, t.high) for t in taken]).T / sizes
        axes[0].errorbar(
            sizes, middle, [middle - low, high - middle], fmt="o-", color=color, markersize=4
        )
        bytes_each = np.array(list(found.workspaces[name].values())) / KIB
        axes[1].plot(sizes, bytes_each, "o-", color=color, markersize=4)
        labels[0].append((sizes[-1], middle[-1], name, color))
        labels[1].append((sizes[-1], bytes_each[-1], name, color))
    for ax, ends, what in zip(axes, labels, ("µs for each image", "workspace"), strict=True):
        ax.loglog()
        ax.minorticks_off()
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.set(xlabel="images in a micro-batch", ylabel=what)
        ax.yaxis.set_major_formatter("{x:g}")
        if ax is axes[0]:
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        else:
            _in_bytes(ax.yaxis)
        ax.figure.canvas.draw()  # limits are final now
        label_ends(ax, ends)
    return axes


@measured
def front(
    plans: Sequence[Plan], whole: Mapping[str, Plan], run: Sequence[tuple[float, float]] = ()
) -> Axes:
    """Draw the least time under each cap, and the ways that take the whole batch at once.

    `run` has pairs of a plan's workspace and the seconds that it took: crosses.
    """
    _, ax = plt.subplots(figsize=(7.5, 4))
    sizes, times = np.array([(p.workspace / KIB, 1e3 * p.seconds) for p in plans]).T
    ax.step([*sizes, 2 * sizes[-1]], [*times, times[-1]], where="post", color=GREY, linewidth=1.2)
    ax.plot(sizes, times, "o", color=GREY, markersize=4, label="planned")
    for k, (name, plan) in enumerate(sorted(whole.items(), key=lambda way: way[1].workspace)):
        point, ink = (plan.workspace / KIB, 1e3 * plan.seconds), INKS.get(name, INK)
        ax.plot(*point, "s", color=ink, markersize=7, markerfacecolor="none", markeredgewidth=1.6)
        note(ax, name, point, (7, -14 if k % 2 else 5), color=ink)  # neighbours apart
    if run:
        at, seconds = zip(*run, strict=True)
        ax.plot(
            np.array(at) / KIB, 1e3 * np.array(seconds), "x", color=INK, markersize=8, label="run"
        )
    ax.legend(frameon=False)
    ax.set_xscale("log")
    ax.set(xlabel="workspace", ylabel="ms for the batch", ylim=(0, 1.1 * ax.get_ylim()[1]))
    ax.minorticks_off()
    _in_bytes(ax.xaxis)
    return ax


@figure
def plans(chosen: Mapping[str, Plan]) -> Axes:
    """Draw batches cut into micro-batches, a row for each plan, coloured by way."""
    names = list(dict.fromkeys(piece.algorithm for p in chosen.values() for piece in p.pieces))
    inks = {name: INKS.get(name, INK) for name in names}
    _, ax = plt.subplots(figsize=(8, 1.5 + 0.42 * len(chosen)))
    for y, plan in enumerate(chosen.values()):
        left = 0
        for name, size in plan.pieces:
            ax.barh(y, size, 0.66, left, color=inks[name], edgecolor="white")
            left += size
        text = f"{in_words(plan.seconds)}, {in_bytes(plan.workspace)}"
        note(ax, text, (left, y), (6, 0), va="center", fontsize=9)
    handles = [plt.Rectangle((0, 0), 1, 1, color=inks[name]) for name in names]
    where = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0}
    ax.legend(handles, names, ncols=len(names), frameon=False, **where)
    ax.set_yticks(range(len(chosen)), list(chosen))
    ax.set(xlim=(0, 1.35 * left), xlabel="images of the batch")
    ax.set_xticks(np.linspace(0, left, 5))
    return as_rows(ax, list(chosen))


@measured
def shared(by_cap: Mapping[str, Mapping[str, Plan]]) -> Axes:
    """Draw how layers share each cap: their workspaces end to end, and the time of all.

    Those of one operation, such as "conv1_forward" and "conv2_forward", are shades of one colour,
    and the wider ones carry the number of their layer.
    """
    layers = list(next(iter(by_cap.values())))
    families = list(dict.fromkeys(layer.partition("_")[2] for layer in layers))
    _, ax = plt.subplots(figsize=(8, 2 + 0.42 * len(by_cap)))
    left, names, shades = np.zeros(len(by_cap)), list(by_cap), Counter()
    widest = max(sum(p.workspace for p in chosen.values()) for chosen in by_cap.values()) / MIB
    for layer in layers:
        family = families.index(layer.partition("_")[2])  # a hue for an operation
        color = plt.get_cmap("tab20c")(4 * family + shades[family] % 4)
        shades[family] += 1
        length = np.array([chosen[layer].workspace / MIB for chosen in by_cap.values()])
        look = {"color": color, "label": layer, "edgecolor": "white"}
        bars = ax.barh(names, length, 0.66, left, **look)
        number = "".join(filter(str.isdigit, layer))
        for y, (start, wide) in enumerate(zip(left, length, strict=True)):
            if number and wide > 0.02 * widest:
                note(ax, number, (start + wide / 2, y), (0, 0), ha="center", va="center")
        left = left + length
    totals = [f"{in_words(sum(p.seconds for p in of.values()))} planned" for of in by_cap.values()]
    ax.bar_label(bars, totals, padding=6, fontsize=9)
    where = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0, "fontsize": 8}
    ax.legend(ncols=len(families), frameon=False, **where)
    ax.set(xlim=(0, 1.3 * left.max()), xlabel="MiB of workspace, all layers together")
    ax.set_ylabel("cap", color=GREY)
    return as_rows(ax, names)


def _in_bytes(axis: Axis) -> None:
    """Label an axis of KiB by powers of two, such as "32.0 KiB" and "1.00 MiB"."""
    axis.set_major_locator(FixedLocator([2**k for k in range(0, 25, 5)]))
    axis.set_major_formatter(lambda kib, _: in_bytes(kib * KIB))


def in_bytes(size: float) -> str:
    """Bytes with three significant digits, such as "2.05 MiB"."""
    unit, name = (MIB, "MiB") if size >= MIB else (KIB, "KiB")
    return f"{digits(size / unit)} {name}"
