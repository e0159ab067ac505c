"""Pictures of who does what: which thread took which task, who reads and writes what.

They are drawn from what a kernel really did; see `cnnlab.plots` for the common style and arguments.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.plots import COLORS, GREY, LAYERS, figure


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
