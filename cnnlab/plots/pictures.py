"""Pictures of a run: what threads read and write, what ranks send, how times grow with sizes.

They are drawn from what a program really did. `title` and `caption` are those of `plots`.
"""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import EngFormatter, LogLocator

from cnnlab.measure.timing import Timing
from cnnlab.plots.style import (
    COLORS,
    ERRORS,
    GREY,
    INK,
    LAYERS,
    WRONG,
    colors,
    figure,
    label_ends,
    measured,
)
from cnnlab.ranks.schedules import NOBODY


@figure
def schedules(steps: Mapping[str, Callable], size: int, n: int) -> np.ndarray:
    """Draw what schedules do on `size` ranks with n elements: rounds downwards, ranks across.

    `steps[name]` is a function of (rank, size, n), such as `ranks.schedules.ring`. An arrow's width
    grows with its number of elements. Blue ones are added, orange ones replace.
    """
    _, axes = plt.subplots(1, len(steps), figsize=(2.6 * len(steps) + 0.4, 4.2), squeeze=False)
    for ax, (name, schedule) in zip(axes[0], steps.items(), strict=True):
        programs = [list(schedule(rank, size, n)) for rank in range(size)]
        rounds = len(programs[0])
        for rank, program in enumerate(programs):
            ax.plot([rank, rank], [0, rounds], color="#dddddd", zorder=0)
            for k, step in enumerate(program):
                if step.source != NOBODY and step.c < step.d:
                    look = {"arrowstyle": "->", "color": COLORS["vector" if step.add else "device"]}
                    look |= {"lw": 0.5 + 2.0 * (step.d - step.c) / n, "shrinkA": 0, "shrinkB": 0}
                    ax.annotate("", (rank, k + 0.9), (step.source, k + 0.1), arrowprops=look)
        ax.set_title(f"{name}, {rounds} rounds", fontsize=10)
        ax.set(xlim=(-0.5, size - 0.5), ylim=(rounds, 0), xlabel="rank", xticks=range(size))
        ax.grid(visible=False)
        ax.locator_params(axis="y", integer=True)
    axes[0, 0].set_ylabel("round")
    return axes[0]


@measured
def times_by_size(
    sizes: Sequence[int],
    timings: Mapping[str, Sequence[Timing]],
    predicted: Mapping[str, Sequence[float] | Callable] | None = None,
    *,
    unit: str = "elements",
) -> Axes:
    """Draw measured times (points) and predicted times (lines) over sizes, on logarithmic axes.

    A measurement and its prediction have the same name and colour; other predictions are grey. A
    prediction is a time for each size, or a function of it.
    """
    _, ax = plt.subplots(figsize=(7.5, 4.2))
    ax.set(xscale="log", yscale="log", xlabel=unit, ylabel="time")
    ax.yaxis.set_major_formatter(EngFormatter("s"))
    if max(sizes) < 1000 * min(sizes):  # else powers of ten are the ticks
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    palette = dict(zip(timings, colors(list(timings)), strict=True))
    ends = {}  # of each name: where its points or its line end
    for name, seconds in (predicted or {}).items():
        color, at = palette.get(name, GREY), sizes
        if callable(seconds):
            at = np.geomspace(min(sizes), max(sizes), 99)
            seconds = [seconds(n) for n in at]
        at = at[: len(seconds)]
        ax.plot(at, seconds, "-" if name in palette else ":", color=color, lw=1)
        ends[name] = at[-1], seconds[-1], name, color
    for name, series in timings.items():
        value, low, high = np.array([(t.median, t.low, t.high) for t in series]).T
        errors = [value - low, high - value]
        at, style = sizes[: len(value)], {"fmt": "o", "markersize": 4, "color": palette[name]}
        ax.errorbar(at, value, errors, **style, **ERRORS)
        if name not in ends or at[-1] >= ends[name][0]:
            ends[name] = at[-1], value[-1], name, palette[name]
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, list(ends.values()))
    return ax


@figure
def launch_grid(
    owners: np.ndarray, *, labels: np.ndarray | None = None, cell: float = 0.42
) -> Axes:
    """Draw a grid of elements (rows, columns), coloured by the thread block that computes each.

    `owners` holds the number of the block, negative if there is none; `labels` the text, by default
    that number. An element is `cell` inches wide.
    """
    rows, columns = owners.shape
    _, ax = plt.subplots(figsize=(min(9, 0.6 + cell * columns), 0.8 + cell * rows))
    shade = np.where(owners < 0, np.nan, owners % len(LAYERS))
    ax.imshow(shade, cmap=ListedColormap(LAYERS), vmin=-0.5, vmax=len(LAYERS) - 0.5, alpha=0.55)
    labels = owners if labels is None else labels
    for (row, column), label in np.ndenumerate(labels):
        if owners[row, column] >= 0:
            ax.text(column, row, label, ha="center", va="center", fontsize=8, color=INK)
    ax.set(xticks=range(columns), yticks=range(rows), xlabel="column", ylabel="row")
    ax.grid(visible=False)
    return ax


WRITE, MOST_THREADS = 1, 256


def accesses(traces: Sequence, *, threads: int = MOST_THREADS) -> np.ndarray | None:
    """Draw which thread touches which element, with a row for each launch; say what is at fault.

    A panel is an array: dots are reads, rings are writes, crosses lie outside of the array. The
    first `threads` threads are drawn. Prints a line, and returns None, where nothing was accessed.
    """
    traces = [trace for trace in traces if len(trace)]
    if not traces:
        print("No access yet: there is nothing to draw.")
        return None
    faults = [fault for trace in traces for fault in trace.faults()]
    outside = sum(int(_outside(trace).sum()) for trace in traces)
    total = sum(map(len, traces))
    kinds = ", ".join(dict.fromkeys(fault.kind for fault in faults))
    title = f"{total:,} accesses, {f'at fault: {kinds}' if faults else 'none at fault'}"
    return _draw(traces, threads, title=title + f" ({outside:,} of them)" * bool(outside))


def _outside(trace) -> np.ndarray:
    """Which accesses lie outside of their array."""
    sizes = np.array([array.size for array in trace.arrays] + [0])[trace.array]
    return (trace.index < 0) | (trace.index >= sizes)


@figure
def _draw(traces: Sequence, threads: int) -> np.ndarray:
    """Draw the elements that each thread reads and writes, a row for each launch."""
    used = [sorted({int(n) for n in trace.array if n >= 0}) for trace in traces]
    columns = max(map(len, used))
    size = (max(4, 2.25 * columns), 0.6 + 2.3 * len(traces))
    _, axes = plt.subplots(len(traces), columns, figsize=size, squeeze=False)
    for row, trace, numbers in zip(axes, traces, used, strict=True):
        who = trace.block * int(np.prod(trace.block_size)) + trace.thread
        write, outside, early = trace.flags & WRITE > 0, _outside(trace), who < threads
        for ax, number in zip(row, numbers, strict=False):
            array, mine = trace.arrays[number], (trace.array == number) & early
            for rows, look in (
                (mine & ~write & ~outside, {"color": COLORS["vector"], "s": 4}),
                (
                    mine & write & ~outside,
                    {"facecolors": "none", "edgecolors": COLORS["device"], "s": 16, "lw": 0.8},
                ),
                (mine & outside, {"color": WRONG, "s": 22, "marker": "x", "lw": 1}),
            ):
                seen = np.unique(np.stack([who[rows], trace.index[rows]]), axis=1)
                ax.scatter(*seen, **look)
            ax.axhline(array.size - 0.5, color=GREY, lw=0.8, ls="--")
            where = ", shared" if array.shared else ""
            ax.set_title(f"{array.name}{where}: {array.size:,} elements", fontsize=9)
            first = f" (the first {threads})" * bool(not early.all())
            ax.set_xlabel(f"thread{first}")
            ax.set_ylim(max(array.size, trace.index[mine].max(initial=0)), -1)
            ax.locator_params(nbins=4, integer=True)
        for ax in row[len(numbers) :]:
            ax.set_visible(False)
        row[0].set_ylabel(f"{trace.kernel}\nelement")
    return axes
