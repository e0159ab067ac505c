"""The exercises of lesson 62, its charts, and the pool as a stepper."""

import math
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import COLORS, GREY, measured

PALETTE = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#7b5ea7", "#882255"


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
        ax = frame((5.2, 1.5))
        ax.set(xlim=(0, end), ylim=(0, 1.6), yticks=[], xlabel="kB from the beginning of the pool")
        ax.add_patch(plt.Rectangle((0, 0), end, 1, fc="#eeeeee", ec="#bbbbbb", hatch="////"))
        for name, (start, n) in nodes.items():
            touched = name in task.makes or name in task.reads
            color = COLORS["device"] if name.startswith("d_") else COLORS["vector"]
            look = {"color": color, "alpha": 1 if touched else 0.45, "ec": "white"}
            for layer in ({"color": "white"}, look):  # so that no hatching shows through
                ax.add_patch(plt.Rectangle((start / 250, 0), n / 250, 1, **layer))
            if n / 250 > 0.03 * end:
                ax.text((start + n / 2) / 250, 1.05, name, va="bottom", fontsize=7, rotation=20)
        reads = ", ".join(task.reads)
        then = f"; then {', '.join(names)} can go" if names else ""
        made = f", makes {', '.join(task.makes)}" if task.makes else ""
        captions.append(f"{task.name}: reads {reads}{made}{then}. In use: {used / 1e3:.0f} kB.")
        frames.append(ax.figure)
    title = "Four images: outputs blue, gradients orange; pale: waits; hatched: free, poisoned"
    return stepper(frames, title=title, captions=captions)


@measured
def over_segments(profiles: Mapping, measured: Mapping, formula, need, marked) -> Sequence[Axes]:
    """Draw memory over a step for three plans; peak and time over k segments, some k marked."""
    _, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.2), width_ratios=[1.5, 1, 1])
    left.set(xlabel="share of the step's tasks", ylabel="MB in use")
    for (name, used), color in zip(profiles.items(), PALETTE, strict=False):
        left.plot(np.linspace(0, 1, len(used)), np.array(used) / 1e6, color=color, label=name)
    left.axhline(need / 1e6, color=GREY, ls="--", lw=1, label="largest need")
    left.legend(frameon=False, fontsize=9)
    peaks, seconds = np.array([*measured.values()]).T
    middle.plot([*measured], peaks / 1e6, "o-", ms=3, color=PALETTE[2])
    middle.plot([*formula], np.array([*formula.values()]) / 1e6, color=PALETTE[3])
    middle.axhline(need / 1e6, color=GREY, ls="--", lw=1)
    middle.legend(["tasks", "formula, no gradients"], frameon=False, fontsize=8, loc="lower left")
    middle.set(xlabel="segments", ylabel="MB at the peak", xscale="log", yscale="log")
    right.plot([*measured], 1e3 * seconds, "o-", ms=3, color=PALETTE[2])
    top = 1.2e3 * max(seconds)
    right.set(xlabel="segments", ylabel="ms, by the times of tasks", xscale="log", ylim=(0, top))
    for (k, text), at in zip(marked.items(), ((-24, -46), (-50, 18), (-8, -48)), strict=True):
        look = {"textcoords": "offset points", "xytext": at, "fontsize": 7}
        look["arrowprops"] = {"arrowstyle": "-", "lw": 0.6, "color": GREY}
        right.annotate(text, (k, 1e3 * measured[k][1]), **look)
        middle.annotate(text, (k, measured[k][0] / 1e6), **look)
    return left, middle, right


@measured
def fronts(tables: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> Sequence[Axes]:
    """Draw time over peak for ways to choose what is made again, a panel for each network."""
    _, axes = plt.subplots(1, len(tables), figsize=(9.2, 3.4))
    for ax, (name, curves) in zip(axes, tables.items(), strict=True):
        for (way, points), color, mark in zip(curves.items(), PALETTE, "osd^", strict=False):
            ax.plot(*np.transpose(sorted(points)), mark, ms=4, color=color, label=way, alpha=0.8)
        ax.axvline(1, color=GREY, ls="--", lw=1)
        ax.set(title=name, xscale="log", xlabel="peak, in needs")
        peaks, times = np.transpose(sorted(chain.from_iterable(curves.values())))
        ax.step(peaks, np.minimum.accumulate(times), where="post", color=GREY, label="Pareto front")
        ticks = [peak for peak in (1, 1.5, 2, 5, 10, 20) if peak <= peaks[-1]]
        ax.set_xticks(ticks, ticks)
        ax.minorticks_off()
    axes[0].set_ylabel("time over that with liveness alone")
    axes[-1].legend(frameon=False, fontsize=9, loc="lower left")
    return axes


@measured
def hiding(lanes: Mapping, between: Sequence, speeds, curves: Mapping, bound) -> Sequence[Axes]:
    """Draw spans (lane, name, start, end) between two tasks, by way; a step's time over GB/s."""
    _, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.4), width_ratios=[1.3, 1])
    for row, (way, spans) in enumerate(lanes.items()):
        at = {name: (start, end) for lane, name, start, end in spans if lane == "core"}
        first, last = at[between[0]][0], at[between[1]][1]
        left.text(0, 0.55 - 3 * row, way, fontsize=8)
        for lane, name, start, end in spans:
            if lane != "out" and first < end and start < last:
                y, x = -3 * row - (lane == "in"), 1e3 * (max(start, first) - first)
                width = 1e3 * (min(end, last) - first) - x
                color = PALETTE[2] if lane == "in" else COLORS["vector"]
                left.broken_barh([(x, width)], (y - 0.4, 0.8), color=color, ec="white")
                text = name if lane == "core" else name.split("_")[-1]
                if width > 0.05e3 * (last - first):
                    left.text(x + width / 2, y, text, ha="center", va="center", c="w", fontsize=7)
    rows = [-3 * row - link for row in range(len(lanes)) for link in (0, 1)]
    left.set_yticks(rows, ["core", "link in"] * len(lanes), fontsize=8)
    left.set(xlabel="ms, two blocks of the backward pass", ylim=(rows[-1] - 0.6, 1.2))
    right.set(xscale="log", xlabel="GB/s each way, simulated", ylim=(0.9, 3))
    right.set_ylabel("times as long as computing")
    right.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    for (name, times), color in zip(curves.items(), PALETTE, strict=False):
        right.plot(speeds, times, color=color, label=name)
    right.plot(speeds, bound, "--", color=GREY, label="bound of the plain ones")
    right.axvline(16, color=GREY, lw=1, ls=":", label="PCIe 3.0, 16 lanes")
    right.legend(facecolor="w", edgecolor="w", framealpha=1, fontsize=8)
    return left, right


def toy_step(n_layers: int) -> list:
    """A chain's step: backward, a layer reads what it read forward, and its gradient."""
    names = ["image", *(f"y{i}" for i in range(1, n_layers + 1))]
    rows = [(b, [a], [b]) for a, b in pairwise(names)] + [("loss", names[-1:], ["d_" + names[-1]])]
    for a, b in reversed([*pairwise(names)]):
        rows.append((f"back_{b}", [a, f"d_{b}"], [f"d_{a}"] if a != "image" else []))
    return [SimpleNamespace(name=n, reads=r, makes=dict.fromkeys(m, (16,))) for n, r, m in rows]


def _as_dead(answer) -> str:
    step = toy_step(4)
    again = [*step[:6], *step[:2], step[6], step[0], *step[7:]]
    for tasks in (step[:2], step, [step[0], *step], again, [*again, *again]):
        got, dead = ([sorted(k) for k in f([*tasks])] for f in (answer, last_uses.model()))
        if got != dead:
            names = " ".join(task.name for task in tasks)
            return f"{names}: expected to die after each task {dead}, got {got}"
    return ""


@kinds.tested(
    _as_dead,
    "When a tensor is made a second time, what became of the first one?",
    "What is made anew was dead since it was last touched: it dies there, and again at the end.",
)
def last_uses(tasks):
    """A tensor that is made again is a new one; the old one died when it was last touched."""
    last, dead = {}, [[] for _ in tasks]
    for k, task in enumerate(tasks):
        for name in task.makes:
            if name in last:
                dead[last[name]].append(name)
        last |= dict.fromkeys((*task.reads, *task.makes), k)
    for name, k in last.items():
        if name != "image":
            dead[k].append(name)
    return dead


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
    """One look-up a level. What it costs is internal fragmentation: lengths are rounded up."""
    while empty.get(start ^ length) == length:
        del empty[start ^ length]
        start, length = min(start, start ^ length), 2 * length
    empty[start] = length
    return empty


def _as_chosen(answer) -> str:
    cases = [({"a": [1, 9], "b": [2, 5]}, 3), ({"b": [8], "a": [1, 2]}, 4)]
    for _ in range(20):
        tasks = kinds.generator().permutation(40).reshape(4, 10)
        cases.append(({n: sorted(t.tolist()) for n, t in zip("abcd", tasks, strict=True)}, 20))
    for uses, k in cases:
        if (got := answer({**uses}, k)) != (best := choice.model()(uses, k)):
            return f"uses {uses}, task {k}: expected {best!r}, got {got!r}"
    return ""


@kinds.tested(
    _as_chosen,
    "What was read before task k does not matter any more.",
    "For each tensor, its first use after k counts; one without any may go at once.",
)
def choice(uses, k):
    """Backward goes in the opposite order, so used longest ago is mostly needed last: compare."""
    return max(uses, key=lambda name: min((at for at in uses[name] if at > k), default=math.inf))


def _as_mixed(answer) -> str:
    step, pieces = toy_step(10), [["y1", "y2", "y3"], ["y5"], ["y7", "y8"]]
    size = {f"y{i}": int(n) for i, n in enumerate(kinds.generator().integers(10, 30, 10), 1)}
    for most in (0, *(sum(size[name] for name in piece) for piece in pieces)):
        both = (mix([*step], pieces, size, most) for mix in (answer, challenge_mix.model()))
        got, best = ([task.name for task in tasks] for tasks in both)
        if got != best:
            return f"bytes {size}, most {most}: expected {' '.join(best)}, got {' '.join(got)}"
    return ""


@kinds.tested(
    _as_mixed,
    "With `stay`, what is missing is found once; without, again before each task. By segment.",
    "After each task of the backward pass, the tensors of the large segments are missing again.",
)
def challenge_mix(tasks, pieces, size, most):
    """A small segment is made once; a large one anew, so that not all of it is there at a time."""
    makers = {task.name: task for task in tasks}
    large = [piece for piece in pieces if sum(size[name] for name in piece) > most]
    missing = {name for piece in pieces for name in piece}
    loss = next(k for k, task in enumerate(tasks) if task.name == "loss")
    result = tasks[:loss]

    def make(name):
        if name in missing:
            missing.remove(name)
            for source in makers[name].reads:
                make(source)
            result.append(makers[name])

    for task in tasks[loss:]:
        for name in task.reads:
            make(name)
        result.append(task)
        missing.update(name for piece in large for name in piece)
    return result
