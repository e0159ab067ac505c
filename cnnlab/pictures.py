"""Pictures of who does what: which thread took which task, who reads and writes what.

They are drawn from what a kernel really did; see `cnnlab.plots` for the common style and arguments.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.measure import Timing
from cnnlab.plots import COLORS, ERRORS, GREY, INK, LAYERS, OTHERS, _labels, _measured, figure
from cnnlab.ranks.schedules import NOBODY, SCHEDULES


@figure
def loads(
    taken: Mapping[str, Sequence[int]],
    n_threads: int,
    *,
    work: Sequence[float] | None = None,
    unit: str = "tasks",
) -> np.ndarray:
    """Draw each thread's tasks one after the other, a panel for each way to deal them out.

    `taken[name][i]` is the thread that took task i, and `work[i]` the length of that task. The
    dashed line is where all would be done if the work were shared evenly.
    """
    tasks = len(next(iter(taken.values())))
    work = np.ones(tasks) if work is None else np.asarray(work, float)
    height = 1.1 + 0.32 * n_threads
    _, axes = plt.subplots(
        1, len(taken), figsize=(9, height), sharex=True, sharey=True, squeeze=False
    )
    for ax, (name, owners) in zip(axes[0], taken.items(), strict=True):
        ends = np.zeros(n_threads)
        for i, thread in enumerate(owners):
            look = {"color": LAYERS[i * len(LAYERS) // tasks], "edgecolor": "white"}
            ax.barh(thread, work[i], 0.8, ends[thread], linewidth=0.8, **look)
            ends[thread] += work[i]
        ax.axvline(work.sum() / n_threads, color=GREY, linestyle="--", linewidth=1.2)
        ax.set_title(name, fontsize=10)
        ax.set(xlabel=unit, yticks=range(n_threads), ylim=(n_threads - 0.4, -0.6))
        ax.grid(axis="y", visible=False)
        ax.locator_params(axis="x", integer=True)
    axes[0, 0].set_ylabel("thread")
    return axes[0]


@figure
def access_maps(logs: Mapping[str, Sequence], arrays: Sequence[str], *, steps: int = 400) -> Axes:
    """Draw which place of which array each access goes to, in order: a row of panels for a kernel.

    `logs` are those of `cnnlab.accesses.accesses`, by kernel; the first `steps` accesses are drawn.
    """
    shape = len(logs), len(arrays)
    size = (9, 0.6 + 1.5 * len(logs))
    _, axes = plt.subplots(*shape, figsize=size, squeeze=False, sharex=True, sharey="col")
    for row, (kernel, log) in zip(axes, logs.items(), strict=True):
        for ax, array in zip(row, arrays, strict=True):
            for kind, color in (("read", COLORS["vector"]), ("write", COLORS["device"])):
                steps_seen = [
                    t for t, entry in enumerate(log[:steps]) if entry[:2] == (array, kind)
                ]
                places = [log[t][2] for t in steps_seen]
                ax.plot(steps_seen, places, ".", color=color, markersize=3, label=kind)
            ax.locator_params(nbins=4, integer=True)
        row[0].set_ylabel(kernel, rotation=0, ha="right", va="center")
    for ax, array in zip(axes[0], arrays, strict=True):
        ax.set_title(f"place in {array}", fontsize=10)
    for ax in axes[-1]:
        ax.set_xlabel("access number")
    look = {"frameon": False, "markerscale": 3, "ncols": 2, "fontsize": 8}
    axes[0, 0].legend(loc="lower left", bbox_to_anchor=(-0.9, 1.0), **look)
    return axes


@figure
def messages(logs: Sequence[Sequence]) -> Axes:
    """Draw what ranks sent, over time: a line for each rank, an arrow for each message.

    `logs[rank]` is the log of its `cnnlab.ranks.trace.Traced`. A bar is the time that a rank spent
    in a call: blue in a send, orange in a receive.
    """
    _, ax = plt.subplots(figsize=(9, 0.9 + 0.55 * len(logs)))
    zero = min(message.begin for log in logs for message in log)
    for rank, log in enumerate(logs):
        for kind, color, shift in (("send", COLORS["vector"], -0.1), ("receive", "#e69f00", 0.1)):
            spans = [
                (1e6 * (m.begin - zero), 1e6 * (m.end - m.begin)) for m in log if m.kind == kind
            ]
            ax.broken_barh(spans, (rank + shift - 0.07, 0.14), color=color)
        for peer in {m.peer for m in log if m.kind == "send"}:
            sent = [m for m in log if (m.kind, m.peer) == ("send", peer)]
            came = [m for m in logs[peer] if (m.kind, m.peer) == ("receive", rank)]
            for out, back in zip(sent, came, strict=True):
                start, end = (1e6 * (out.begin - zero), rank), (1e6 * (back.end - zero), peer)
                ax.annotate(
                    "", end, start, arrowprops={"arrowstyle": "->", "color": INK, "lw": 0.9}
                )
    ax.set(xlabel="µs", yticks=range(len(logs)), ylim=(len(logs) - 0.5, -0.5))
    ax.set_yticklabels([f"rank {rank}" for rank in range(len(logs))])
    ax.grid(axis="y", visible=False)
    return ax


@figure
def schedules(names: Sequence[str], size: int, n: int) -> np.ndarray:
    """Draw allreduce schedules for `size` ranks and n elements: rounds downwards, ranks across.

    The width of an arrow grows with the number of elements; blue ones are added, orange replace.
    """
    _, axes = plt.subplots(1, len(names), figsize=(2.6 * len(names) + 0.4, 4.2), squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        programs = [list(SCHEDULES[name](rank, size, n)) for rank in range(size)]
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


@_measured
def times_by_size(
    sizes: Sequence[int],
    timings: Mapping[str, Sequence[Timing]],
    predicted: Mapping[str, Sequence[float]] | None = None,
    *,
    unit: str = "elements",
) -> Axes:
    """Draw measured seconds (points) and predicted ones (lines) over sizes, both logarithmic.

    What has the same name has the same colour; a prediction that nothing was measured for is grey.
    """
    _, ax = plt.subplots(figsize=(7.5, 4.2))
    ax.set(xscale="log", yscale="log", xlabel=unit, ylabel="seconds")
    palette = dict(zip(timings, OTHERS, strict=False))
    labels = []
    for name, seconds in (predicted or {}).items():
        color = palette.get(name, GREY)
        ax.plot(sizes[: len(seconds)], seconds, "-" if name in palette else ":", color=color, lw=1)
        if name not in palette:
            labels.append((sizes[len(seconds) - 1], seconds[-1], name, color))
    for name, series in timings.items():
        value, low, high = np.array([(t.median, t.low, t.high) for t in series]).T
        errors = [value - low, high - value]
        at, style = sizes[: len(value)], {"fmt": "o", "markersize": 4, "color": palette[name]}
        ax.errorbar(at, value, errors, **style, **ERRORS)
        labels.append((at[-1], value[-1], name, palette[name]))
    ax.figure.canvas.draw()  # limits are final now
    _labels(ax, labels)
    return ax
