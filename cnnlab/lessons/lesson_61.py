"""The exercises of lesson 61, its charts and drawings, and clocks for the pieces of a step."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.measure.timing import Timing
from cnnlab.measure.timing import mean_interval as interval
from cnnlab.plots.style import COLORS, INK, as_rows, colors, figure, label_ends, measured


def clocked(step: Callable, pieces: tuple, update: Callable) -> tuple[Callable, Callable]:
    """`step(pieces, update)` with clocks, and what gives the median share of each group, of 1."""
    groups = {"over_time": "products over time", "at_once": "products at once"}
    samples = []

    def clock(call: Callable, name: str) -> Callable:
        group = groups.get(name, "tanh, softmax, rows, Adam")

        def timed(*args, **kwargs):
            start = time.perf_counter()
            result = call(*args, **kwargs)
            samples[-1][group] += time.perf_counter() - start
            return result

        return timed

    own = pieces._replace(**{name: clock(piece, name) for name, piece in pieces._asdict().items()})

    def call() -> None:
        samples.append(Counter())
        start = time.perf_counter()
        step(own, clock(update, "adam"))
        samples[-1]["the rest"] = time.perf_counter() - start - sum(samples[-1].values())

    def shares() -> dict[str, float]:
        middle = {name: np.median([s[name] / s.total() for s in samples]) for name in samples[-1]}
        return {name: share / sum(middle.values()) for name, share in middle.items()}

    return call, shares


def spread(values: Sequence[float]) -> str:
    """The mean of five and its 95 % interval, as text."""
    return "{:.3f} ± {:.3f}".format(*interval(values))


@measured
def ladder(steps: Mapping[str, Timing], shares: Mapping[str, float], bound: float) -> Axes:
    """Draw the time of a step after each change, what it saved, and the last by shares."""
    _, ax = plt.subplots(figsize=(7.2, 0.45 * len(steps) + 2.0))
    before, left = None, 0.0
    for name, timing in steps.items():
        took = 1e6 * timing.median
        ax.barh(name, took, color=COLORS["device" if name == "hoisted" else "vector"], height=0.6)
        if before and before > took:
            ax.barh(name, before - took, left=took, color="#dddddd", height=0.6)
        ax.text(max(took, before or 0), name, f"  {took:.0f}", va="center", fontsize=9)
        before = took
    for (name, share), color in zip(shares.items(), colors(list(shares)), strict=True):
        ax.barh("its parts", share * before, left=left, color=color, height=0.6, label=name)
        left += share * before
    ax.axvline(1e6 * bound, color="black", ls="--", lw=1, label="products at this core's peak")
    ax.set_xlabel("µs for a step of 320 symbols; grey: saved by this change")
    ax.margins(x=0.12)
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.2), ncols=2, frameon=False, fontsize=9)
    return as_rows(ax, [*steps, "its parts"])


@figure
def unrolled(word: str, depth: int) -> Axes:
    """Draw a network unrolled over the characters of a word: what waits, and where it is cut."""
    (_, ax), small = plt.subplots(figsize=(7.2, 3.2)), {"ha": "center", "fontsize": 9}
    ax.set(xlim=(-0.9, len(word) - 0.1), ylim=(-0.6, 2.7))
    ax.axis("off")
    blue, orange, grey = COLORS["vector"], COLORS["device"], "#dddddd"

    def arrow(start: tuple, end: tuple, color: str, ls: str = "-") -> None:
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": color, "ls": ls})

    for t, (x, y) in enumerate(pairwise(word)):
        for row, text in enumerate((f"E of {x}", f"h{t + 1}", f"scores: {y}?")):
            look = {"boxstyle": "round", "fc": blue if row == 1 else grey, "ec": "none"}
            ink = {"color": "white" if row == 1 else INK, "ha": "center", "va": "center"}
            ax.text(t, row, text, fontsize=9, bbox=look, **ink)
            if row:
                arrow((t, row - 0.8), (t, row - 0.2), INK)
                arrow((t + 0.15, row - 0.2), (t + 0.15, row - 0.8), orange)
        ax.text(t - 0.12, 1.45, "O", **small)
        ax.text(t - 0.5, 1.14, "W", color=blue, **small)
        arrow((t - 0.8, 1.08), (t - 0.2, 1.08), blue, "-" if t else "--")
        if t % depth:
            arrow((t - 0.2, 0.88), (t - 0.8, 0.88), orange)
        elif t:
            ax.plot([t - 0.5] * 2, [0.5, 1.0], color=orange, lw=2)
            ax.text(t - 0.5, 0.4, "cut", color=orange, va="top", **small)
    arrow((len(word) - 1.8, 1.08), (len(word) - 1.2, 1.08), blue, "--")
    for row, text in ((-0.45, "rows of E, dE and dW: at once"), (2.45, "scores, dO, dh: at once")):
        ax.plot([-0.3, len(word) - 1.7], [row] * 2, color=grey)
        ax.text(len(word) / 2 - 1, row + 0.08, text, **small)
    return ax


@figure
def beside(at: Sequence, lines: Mapping, level: float | None = None, **look) -> Axes:
    """Draw a line and a band for each (low, middle, high), and a level beside them."""
    _, ax = plt.subplots(figsize=(6.4, 3.3), subplot_kw=look)
    for (name, (low, middle, high)), color in zip(lines.items(), colors(list(lines)), strict=True):
        ax.plot(at, middle, color=color, label=name)
        ax.fill_between(at, low, high, color=color, alpha=0.2, lw=0)
    if level is not None:
        ax.axhline(level, color=INK, ls="--", lw=0.7)
        ax.set(xscale="log", xticks=at, xticklabels=at)
        ax.minorticks_off()
    ax.legend(frameon=False, fontsize=9)
    return ax


@figure
def curves(at: Sequence, bits: Mapping, limits: Mapping) -> Axes:
    """Draw bits a character: the mean of five seeds, and their range; dashed: what others need."""
    spans = {name: (seeds.min(0), seeds.mean(0), seeds.max(0)) for name, seeds in bits.items()}
    band = "epochs; band: lowest to highest of five seeds"
    ax = beside(at, spans, xlabel=band, ylabel="bits a character")
    own = {name: COLORS["device"] if "frozen" in name else INK for name in limits}
    for name, limit in limits.items():
        ax.axhline(limit, color=own[name], ls="--", lw=1.8 if "frozen" in name else 0.5)
    ax.set(ylim=ax.get_ylim(), xlim=ax.get_xlim())
    label_ends(ax, [(at[-1], y, f"{name}: {y:.2f}", own[name]) for name, y in limits.items()])
    ax.legend(frameon=False, fontsize=9, loc="upper right")
    return ax


# --- the exercises --------------------------------------------------------------------------------


def _as_leaky(back) -> str:
    rng, (T, B, H) = kinds.generator(), (6, 2, 3)
    (a, dh), h = rng.uniform(-1, 1, (2, T, B, H)), rng.uniform(-1, 1, (T + 1, B, H))
    W, k = rng.uniform(-1, 1, (H, H)), float(rng.uniform(0.2, 0.8))

    def slope(da, dW, depth: int) -> float:
        """How the sum of dh · state grows, by complex steps; each part begins with a constant."""
        total, state = 0.0, h[0]
        for t in range(T):
            state = h[t] if t % depth == 0 else state
            state = (1 - k) * state + k * np.tanh(a[t] + 1e-20j * da[t] + state @ (W + 1e-20j * dW))
            total += (dh[t] * state).sum()
        return 1e20 * total.imag

    for t in range(T):
        h[t + 1] = (1 - k) * h[t] + k * np.tanh(a[t] + h[t] @ W)
    arrays = dh, h, a + h[:-1] @ W, W
    kept, lines = [array.copy() for array in arrays], [rng.uniform(-1, 1, x.shape) for x in (a, W)]
    for depth in (T, 2, 4, 1):
        got = back(*arrays, k, depth)
        if any(not np.array_equal(x, y) for x, y in zip(kept, arrays, strict=True)):
            return "the arrays that are given are changed"
        if not isinstance(got, tuple) or [np.shape(each) for each in got] != [a.shape, W.shape]:
            return f"expected a tuple (dz, dW) of shapes {a.shape} and {W.shape}"
        for n, name in enumerate(("dz", "dW")):
            expected = slope(lines[0] * (n == 0), lines[1] * (n == 1), depth)
            rise = float((got[n] * lines[n]).sum())
            if not abs(rise - expected) < 1e-7:
                return f"{name}, depth {depth}: slope {expected:.6f} along a line, yours {rise:.6f}"
    return ""


@kinds.tested(
    _as_leaky,
    "Begin with the last step. What reaches a state: dh of this step, and what came from later.",
    "From a state two ways lead back: through tanh and W, and past both, times 1 − k. Cut both.",
)
def leaky(dh, h, z, W, k, depth):
    """Past tanh and W, it shrinks by 1 − k only: a factor that an LSTM's forget gate learns."""
    dz, dW, later = np.empty_like(z), np.zeros_like(W), 0
    for t in reversed(range(len(z))):
        reached = dh[t] + later
        dz[t] = reached * k * (1 - np.tanh(z[t]) ** 2)
        dW += h[t].T @ dz[t]
        later = dz[t] @ W.T + (1 - k) * reached if t % depth else 0
    return dz, dW


@kinds.labels(
    "sound,target not shifted,state not carried,gradient not summed,test text seen,"
    "gradient cut too early,rate too high".split(","),
    [
        "what must a network do whose target is its input?",
        "does a network that begins as uniform know anything yet?",
        "how many rows does an assignment keep where a symbol comes twice?",
        "what does each chunk of ten know of the text before it?",
        "what may a tenth have in common with the nine others?",
    ],
    "What would a sound program print? What differs when one line is wrong?",
    "One is sound. log₂ 103 is 6.69.",
)
def diagnosis():
    """It copies its input; log₂ 103; one row a symbol; no memory; a tenth that is no secret."""
    first = ["target not shifted", "sound", "gradient not summed"]
    return [*first, "state not carried", "test text seen"]


def _as_fronts(plan) -> str:
    for layers, steps, n_threads in ((2, 5, 2), (3, 4, 2), (4, 6, 3), (3, 3, 9), (5, 7, 1)):
        at = f"{layers} layers, {steps} time steps, {n_threads} threads"
        finished, n_fronts = set(), 0
        for front in plan(layers, steps, n_threads):
            tasks, n_fronts = [tuple(task) for task in front], n_fronts + 1
            if not 0 < len({*tasks}) == len(tasks) <= n_threads:
                return f"{at}: front {n_fronts} has {len({*tasks})} different tasks of {len(tasks)}"
            for task in tasks:
                if not (0 <= task[0] < layers and 0 <= task[1] < steps) or task in finished:
                    return f"{at}: {task} is no task, or comes twice"
                before = {(task[0] - 1, task[1]), (task[0], task[1] - 1)}
                if not finished.issuperset(each for each in before if min(each) >= 0):
                    return f"{at}: front {n_fronts} takes {task} before what it needs is done"
            finished.update(tasks)
        if len(finished) < layers * steps:
            return f"{at}: {layers * steps - len(finished)} tasks are missing"
        if n_fronts > (least := len(challenge_fronts.model()(layers, steps, n_threads))):
            return f"{at}: {n_fronts} fronts, and {least} are enough"
    return ""


@kinds.tested(
    _as_fronts,
    "A task is ready when its layer's step before and the layer below's same step are done.",
    "More ready than threads? Take those first from which the longest way leads to the end.",
)
def challenge_fronts(layers, steps, n_threads):
    """Whatever has the longest way to go comes first: list scheduling by critical path."""
    left, result = {(layer, t) for layer in range(layers) for t in range(steps)}, []
    while left:
        ready = [
            (layer, t)
            for layer, t in sorted(left, key=lambda task: (sum(task), task))
            if (layer - 1, t) not in left and (layer, t - 1) not in left
        ]
        result.append(ready[:n_threads])
        left -= set(result[-1])
    return result
