"""The exercises of lesson 62, its charts, the pool as a stepper, and clocks for single tasks."""

import itertools
import time
from collections.abc import Mapping, Sequence
from statistics import median

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.lessons.lesson_51 import page_faults  # noqa: F401, for a cell
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, measured, style

PALETTE = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#7b5ea7", "#882255"


def task_seconds(tasks: Sequence, dead: Sequence, memory, model, repeats: int = 7) -> dict:
    """Median seconds of each task of a step, by its name, after a first step."""
    samples = {task.name: [] for task in tasks}
    for _ in range(repeats + 1):
        memory["image"] = model.x
        for task, names in zip(tasks, dead, strict=True):
            memory.prepare(task)
            start = time.perf_counter()
            task.run(memory, model)
            samples[task.name].append(time.perf_counter() - start)
            for name in names:
                memory.free(name)
    return {name: median(times[1:]) for name, times in samples.items()}


# --- pictures -------------------------------------------------------------------------------------


def in_the_pool(tasks: Sequence, dead: Sequence, pool) -> Stepper:
    """Step through a pool: where each tensor is while a task is at work."""
    states, frames, captions = [], [], []
    for task, names in zip(tasks, dead, strict=True):
        pool.prepare(task)
        states.append((dict(pool.nodes), pool.used))
        for name in names:
            pool.free(name)
    end = max(start + n for nodes, _ in states for start, n in nodes.values()) / 250
    for (nodes, used), task, names in zip(states, tasks, dead, strict=True):
        with style():
            ax = Figure((5.2, 1.5)).subplots()
        ax.set(xlim=(0, end), ylim=(0, 1.6), yticks=[], xlabel="kB from the beginning of the pool")
        ax.add_patch(plt.Rectangle((0, 0), end, 1, color="#eeeeee"))
        for name, (start, n) in nodes.items():
            touched = name in task.makes or name in task.reads
            color = COLORS["device"] if name.startswith("d_") else COLORS["vector"]
            look = {"color": color, "alpha": 1 if touched else 0.45, "ec": "white"}
            ax.add_patch(plt.Rectangle((start / 250, 0), n / 250, 1, **look))
            if n / 250 > 0.03 * end:
                place = (start + n / 2) / 250, 1.05
                ax.text(*place, name, ha="left", va="bottom", fontsize=7, rotation=20)
        reads = ", ".join(task.reads)
        then = f"; then {', '.join(names)} can go" if names else ""
        made = f", makes {', '.join(task.makes)}" if task.makes else ""
        captions.append(f"{task.name}: reads {reads}{made}{then}. In use: {used / 1e3:.0f} kB.")
        frames.append(ax.figure)
    return stepper(frames, title="Outputs and gradients of four images", captions=captions)


@measured
def over_segments(
    profiles: Mapping, measured: Mapping, formula: Mapping, need: int
) -> Sequence[Axes]:
    """Draw memory over a step for three plans; peak and time over the number of segments."""
    _, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.2), width_ratios=[1.5, 1, 1])
    left.set(xlabel="share of the step's tasks", ylabel="MB in use")
    for (name, used), color in zip(profiles.items(), PALETTE, strict=False):
        left.plot(np.linspace(0, 1, len(used)), np.array(used) / 1e6, color=color, label=name)
    left.axhline(need / 1e6, color=GREY, ls="--", lw=1, label="largest need")
    left.legend(frameon=False, fontsize=9)
    peaks, seconds = np.array([*measured.values()]).T
    middle.plot([*measured], peaks / 1e6, "o-", ms=3, color=PALETTE[2])
    middle.plot([*formula], np.array([*formula.values()]) / 1e6, color=PALETTE[3], label="formula")
    middle.axhline(need / 1e6, color=GREY, ls="--", lw=1)
    middle.legend(frameon=False, fontsize=9)
    middle.set(xlabel="segments", ylabel="MB at the peak", xscale="log", yscale="log")
    right.plot([*measured], 1e3 * seconds, "o-", ms=3, color=PALETTE[2])
    right.set(xlabel="segments", ylabel="ms, by the times of tasks", xscale="log", ylim=(0, None))
    return left, middle, right


@measured
def fronts(tables: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> Sequence[Axes]:
    """Draw time over peak for ways to choose what is made again, a panel for each network."""
    _, axes = plt.subplots(1, len(tables), figsize=(9.2, 3.4))
    for ax, (name, curves) in zip(axes, tables.items(), strict=True):
        for (way, points), color, mark in zip(curves.items(), PALETTE, "osd", strict=False):
            ax.plot(*np.transpose(sorted(points)), mark, ms=5, color=color, label=way, alpha=0.8)
        ax.axvline(1, color=GREY, ls="--", lw=1)
        ax.set(title=name, xscale="log", xlabel="peak, in needs of the largest layer")
    axes[0].set_ylabel("time over that with liveness alone")
    axes[-1].legend(frameon=False, fontsize=9, loc="lower left")
    return axes


@measured
def over_bandwidth(speeds: Sequence, curves: Mapping, bound: Sequence) -> Axes:
    """Draw milliseconds of a step over the bandwidth of the link to the host, and a bound."""
    _, ax = plt.subplots(figsize=(7.2, 3.4))
    ax.set(xscale="log", yscale="log", xlabel="GB/s each way, simulated", ylabel="ms a step")
    for (name, seconds), color in zip(curves.items(), PALETTE, strict=False):
        ax.plot(speeds, 1e3 * np.array(seconds), color=color, label=name)
    ax.plot(speeds, 1e3 * np.array(bound), "--", color=GREY, label="bound of all but the last")
    ax.legend(frameon=False, fontsize=9)
    return ax


# --- the exercises --------------------------------------------------------------------------------


def _as_freed(answer) -> str:
    rng = kinds.generator()
    for pieces in ([(0, 8)], [(0, 4), (4, 2), (6, 2)], [(2 * i, 2) for i in range(16)]):
        empty, pieces = {}, [*pieces]
        while pieces:
            piece = pieces.pop(rng.integers(len(pieces)))
            best, got = buddy_free.model()({**empty}, *piece), answer({**empty}, *piece)
            if got != best:
                return f"{empty}, then {piece} is freed: expected {best}, got {got!r}"
            empty = best
    return ""


@kinds.tested(
    _as_freed,
    "The two halves of a piece differ in one bit of where they begin.",
    "The buddy is at start ^ length, and has to be empty with exactly that length.",
)
def buddy_free(empty, start, length):
    """One look-up a level, where a free list of any pieces is searched for neighbours."""
    while empty.get(start ^ length) == length:
        del empty[start ^ length]
        start, length = min(start, start ^ length), 2 * length
    empty[start] = length
    return empty


def _as_peak(answer) -> str:
    rng = kinds.generator()
    cases = [([5], 0), ([5], 1), ([1] * 9, 2), ([9, 1, 1, 1, 9, 1, 1], 2)]
    cases += [(rng.integers(1, 30, n).tolist(), k) for n, k in ((6, 2), (8, 3), (9, 8), (10, 1))]
    for sizes, k in cases:
        if (got := answer([*sizes], k)) != (best := least_peak.model()(sizes, k)):
            return f"sizes {sizes}, k = {k}: expected {best}, got {got!r}"
    return ""


@kinds.tested(
    _as_peak,
    "Where checkpoints are, is a free choice: small outputs are better ones than large.",
    "Fewer than k may be best. For few layers, trying all choices is a good beginning.",
)
def least_peak(sizes, k):
    """Small outputs make good checkpoints: a bottleneck costs little to keep."""

    def peak(chosen):
        ends = [-1, *chosen, len(sizes)]
        between = [sum(sizes[a + 1 : b]) for a, b in itertools.pairwise(ends)]
        return sum(sizes[i] for i in chosen) + max(between)

    choices = [itertools.combinations(range(len(sizes)), j) for j in range(k + 1)]
    return min(peak(chosen) for chosen in itertools.chain(*choices))


@kinds.labels(
    ["fragmentation", "freed too early", "leak", "thrashing", "other random numbers"],
    [
        "what would a sound step leave behind?",
        "what does a cache do that is too small for what is in use?",
        "what is drawn anew when a task runs a second time?",
        "enough bytes are free, but how do they lie?",
        "what does poison show that was wrong before, too?",
    ],
    "What does each part of the runtime do wrong if one line is missing?",
    "One is about pieces, one about order, one about dropout's mask.",
)
def diagnosis():
    """Never freed; a small cache; another mask; pieces too small; a read after a free."""
    again = ["thrashing", "other random numbers"]
    return ["leak", *again, "fragmentation", "freed too early"]


def _as_offsets(answer) -> str:
    rng = kinds.generator()
    cases = [[(0, 1, 4), (1, 2, 4), (2, 3, 4)], [(0, 9, 1), (0, 1, 8), (1, 3, 2), (3, 5, 8)]]
    for n in (8, 14, 20):
        first = rng.integers(0, 12, n)
        last, size = first + rng.integers(0, 8, n), rng.integers(1, 40, n)
        cases.append([*zip(first.tolist(), last.tolist(), size.tolist(), strict=True)])
    for tensors in cases:
        got = answer([*tensors])
        if len(got) != len(tensors) or min(got) < 0:
            return f"{tensors}: expected an offset, at least 0, for each of them, got {got!r}"
        for (a, start), (b, other) in itertools.combinations(zip(tensors, got, strict=True), 2):
            apart = start + a[2] <= other or other + b[2] <= start
            if not apart and a[0] <= b[1] and b[0] <= a[1]:
                return f"{a} at {start} and {b} at {other} overlap"
        model = challenge_offsets.model()(tensors)
        end, enough = (max(s + t[2] for s, t in zip(o, tensors, strict=True)) for o in (got, model))
        if end > enough:
            return f"{tensors}: a buffer of {end}, and {enough} are enough"
    return ""


@kinds.tested(
    _as_offsets,
    "Two tensors may share bytes if no task has both. Which one is the hardest to place?",
    "The largest first, each at the lowest offset where it fits between those already there.",
)
def challenge_offsets(tensors):
    """The largest first, as low as it fits: a small one finds a gap later."""
    offsets = {}
    for i in sorted(range(len(tensors)), key=lambda i: -tensors[i][2]):
        first, last, size = tensors[i]
        placed = [(offsets[j], *tensors[j]) for j in offsets]
        offset = 0
        for start, a, b, n in sorted(placed):
            if a <= last and first <= b and start < offset + size:
                offset = max(offset, start + n)
        offsets[i] = offset
    return [offsets[i] for i in range(len(tensors))]
