"""The exercises of lesson 61, its charts and drawings, and clocks for the pieces of a step."""

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.measure.timing import Timing
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, INK, as_rows, colors, figure, measured, note, style


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

    own = [clock(piece, name) for name, piece in pieces._asdict().items()]
    own, adam = type(pieces)(*own), clock(update, "adam")

    def call() -> None:
        samples.append(Counter())
        start = time.perf_counter()
        step(own, adam)
        samples[-1]["the rest"] = time.perf_counter() - start - sum(samples[-1].values())

    def shares() -> dict[str, float]:
        middle = {name: median(s[name] / sum(s.values()) for s in samples) for name in samples[-1]}
        return {name: share / sum(middle.values()) for name, share in middle.items()}

    return call, shares


def words(text: str, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The words of a text as numbers, how often each comes, and edges of equally frequent classes.

    The most frequent is 0; words that come once or twice are one. Class k begins at edges[k].
    """
    tokens = re.findall(r"\w+|[^\w\s]", text)
    often = [word for word, n in Counter(tokens).most_common() if n > 2]
    number = {word: k for k, word in enumerate(often, 1)}
    ids = np.array([number.get(word, 0) for word in tokens])
    counts = np.bincount(ids)
    order = np.argsort(-counts, kind="stable")
    shares = np.cumsum(counts[order]) / len(ids)
    edges = np.unique(np.searchsorted(shares, np.arange(n_classes) / n_classes))
    return np.argsort(order)[ids], counts[order], np.append(edges, len(counts))


# --- pictures -------------------------------------------------------------------------------------


@measured
def ladder(steps: Mapping[str, Timing], shares: Mapping[str, float], bound: float) -> Axes:
    """Draw the time of a step after each change, what it saved, and the last by shares."""
    _, ax = plt.subplots(figsize=(7.2, 0.45 * len(steps) + 2.0))
    before = None
    for name, timing in steps.items():
        took = 1e6 * timing.median
        ax.barh(name, took, color=COLORS["vector"], height=0.6)
        if before and before > took:
            ax.barh(name, before - took, left=took, color="#dddddd", height=0.6)
        ax.text(max(took, before or 0), name, f"  {took:.0f}", va="center", fontsize=9)
        before = took
    left = 0.0
    for (name, share), color in zip(shares.items(), colors(list(shares)), strict=True):
        ax.barh("its parts", share * before, left=left, color=color, height=0.6, label=name)
        left += share * before
    ax.axvline(1e6 * bound, color="black", ls="--", lw=1, label="products at this core's peak")
    ax.set_xlabel("µs for a step of 320 symbols; grey: saved by this change")
    ax.margins(x=0.12)
    ax.legend(loc="upper center", bbox_to_anchor=(0.4, -0.2), ncols=2, frameon=False, fontsize=9)
    return as_rows(ax, [*steps, "its parts"])


@figure
def curves(bits: Mapping[str, np.ndarray], limits: Mapping[str, float]) -> Axes:
    """Draw bits a symbol of held-out text over epochs: the mean of five seeds, and their range."""
    _, ax = plt.subplots(figsize=(7.2, 3.4))
    ax.set(xlabel="epochs; band: lowest to highest of five seeds", ylabel="bits a character")
    for (name, seeds), color in zip(bits.items(), colors(list(bits)), strict=True):
        at = np.arange(1, seeds.shape[1] + 1)
        ax.plot(at, seeds.mean(0), color=color, label=name)
        ax.fill_between(at, seeds.min(0), seeds.max(0), color=color, alpha=0.2, lw=0)
    for name, limit in limits.items():
        ax.axhline(limit, color="black", ls="--", lw=1)
        note(ax, f"{name}: {limit:.2f}", (1, limit), (0, 3), fontsize=9)
    ax.legend(frameon=False, fontsize=9)
    return ax


def fronts(T: int) -> Stepper:
    """Step through a wavefront: a frame a product, of which layer 1 has one a step, layer 2 two."""
    frames, captions = [], []
    for now in range(2 * T + 1):
        with style():
            ax = Figure((5.6, 1.5)).subplots()
        ax.set(xlim=(-2, 2 * T + 1), ylim=(0, 2))
        ax.axis("off")
        running = []
        for layer in range(2):
            ax.text(-0.15, layer + 0.4, f"layer {layer + 1}", ha="right", va="center", fontsize=9)
            for t in range(T):
                start, length = (1 + 2 * t, 2) if layer else (t, 1)
                if start <= now < start + length:
                    running.append(f"layer {layer + 1} is at time step {t + 1}")
                color = COLORS["device" if now < start + length else "vector"]
                color, ink = (color, "white") if start <= now else ("#eeeeee", INK)
                ax.add_patch(plt.Rectangle((start, layer), length - 0.12, 0.8, color=color))
                middle = start + length / 2 - 0.06
                ax.text(middle, layer + 0.4, t + 1, ha="center", va="center", color=ink)
        captions.append(f"{'; '.join(running).capitalize()}. Threads at work: {len(running)} of 2.")
        frames.append(ax.figure)
    return stepper(frames, title="A wavefront of two layers", captions=captions)


# --- the exercises --------------------------------------------------------------------------------


def _as_leaky(back) -> str:
    rng = kinds.generator()
    for shape in ((1, 1), (3, 5)):
        z, before, dh = (rng.uniform(-1, 1, shape) for _ in range(3))
        k, s = float(rng.uniform(0.1, 0.9)), 1e-5
        kept = [array.copy() for array in (dh, z, before)]
        got = back(dh, z, before, k)
        if any(not np.array_equal(a, b) for a, b in zip((dh, z, before), kept, strict=True)):
            return "the arrays that are given are changed"
        if not isinstance(got, tuple) or len(got) != 2:
            return f"expected a tuple (dz, dbefore), got {type(got).__name__}"
        for name, grad, (dz, db) in zip(("dz", "dbefore"), got, ((s, 0), (0, s)), strict=True):
            ends = [(1 - k) * (before + e * db) + k * np.tanh(z + e * dz) for e in (1, -1)]
            expected = dh * (ends[0] - ends[1]) / (2 * s)
            if np.shape(grad) != shape or not np.allclose(grad, expected, atol=1e-8):
                return f"{name}, k = {k:.2f}: expected {expected.ravel()[0]:.6f}, got {grad!r}"
    return ""


@kinds.tested(
    _as_leaky,
    "h depends on z through the tanh, times k, and on the state before directly, too.",
    "dz = dh · k · (1 − tanh² z). And which factor has the state before?",
)
def leaky(dh, z, before, k):
    """What reaches the state before is (1 − k) dh, undamped by tanh."""
    return dh * k * (1 - np.tanh(z) ** 2), dh * (1 - k)


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
            for layer, t in sorted(left, key=sum)
            if (layer - 1, t) not in left and (layer, t - 1) not in left
        ]
        result.append(ready[:n_threads])
        left -= set(result[-1])
    return result


# --- numbers --------------------------------------------------------------------------------------


def first_below(values: Sequence[float], limit: float) -> int:
    """The epoch, counted from 1, after which the first of the values lies below a limit; or 0."""
    return next((n for n, value in enumerate(values, 1) if value < limit), 0)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean of five, and half the width of its 95 % interval: 2.78 standard errors."""
    return float(np.mean(values)), 2.78 * float(np.std(values, ddof=1)) / 5**0.5


def spread(values: Sequence[float]) -> str:
    """The mean of five and its 95 % interval, as text."""
    return "{:.3f} ± {:.3f}".format(*interval(values))
