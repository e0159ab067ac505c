"""Lesson 51, memory or time: arguments, what is allocated, drawings, and the exercises."""

import functools
import itertools
import math
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from cnnlab.check import exercise, kinds
from cnnlab.check.inputs import TRANSFORMED
from cnnlab.check.kinds import empty
from cnnlab.check.verdict import Verdict
from cnnlab.kernels import CONTRACT
from cnnlab.measure import machine, timing
from cnnlab.measure.timing import digits
from cnnlab.network import Conv, Dense, MaxPool, Network, ReLU, Sigmoid
from cnnlab.plots import charts
from cnnlab.plots.challenge import MINE
from cnnlab.plots.style import GREY, INK, colors, figure, measured, note

TABLES = 300  # random ones that an answer is tried on
KIB, MIB = 2**10, 2**20
ROUNDING = 100  # times that of a sum: what Winograd's transforms lose
BUFFERS = 2**17  # bytes that NumPy takes now and then, whatever the size

# --- the convolutions of a step -------------------------------------------------------------------


BLOCK = Conv(32, 5), ReLU()
NETWORK = Network((Conv(16, 5), ReLU(), *BLOCK, *BLOCK, *BLOCK, MaxPool(4), Dense(10), Sigmoid()))


@dataclass(frozen=True)
class Convolution:
    """An operation of the contract on a layer: C maps of H × H, F filters of K × K."""

    operation: str
    C: int
    F: int
    H: int
    K: int

    def arguments(self, n_images: int) -> list[np.ndarray]:
        """Random float32 arrays; the output is the last."""
        P = self.H - self.K + 1
        shapes = {"x": (n_images, self.C, self.H, self.H), "z": (n_images, self.F, P, P)}
        shapes |= {"w": (self.F, self.C, self.K, self.K), "b": (self.F,)}
        rng = np.random.default_rng(0)
        return [
            rng.uniform(-1, 1, shapes[name.removeprefix("d")]).astype(np.float32)
            for name in CONTRACT[self.operation]
        ]

    def some_images(self, arrays: Sequence, images: slice) -> list[np.ndarray]:
        """The arguments for some images: an array of no images stays whole."""
        shapes = CONTRACT[self.operation].values()
        return [a[images] if s[0] == "N" else a for a, s in zip(arrays, shapes, strict=True)]


def convolutions(network: Network = NETWORK) -> dict[str, Convolution]:
    """The convolutions of a training step, such as "conv2_forward".

    The first layer's gradient with respect to its input is none of these.
    """
    result = {}
    for name in network.multiply_adds:
        layer, _, what = name.partition("_")
        if layer.startswith("conv"):
            place = network[layer]
            (C, H, _), F, K = place.input_shape, place.shape[0], place.layer.kernel
            result[name] = Convolution(f"conv_{what}", C, F, H, K)
    return result


def allocated(kernel: Callable, arrays: Sequence[np.ndarray] = ()) -> int:
    """The bytes of NumPy arrays that a kernel holds at its peak, besides its arguments.

    What compiled code allocates is not seen.
    """
    kernel(*arrays)  # what is kept from a first call is none
    tracemalloc.start()
    try:
        kernel(*arrays)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def page_faults(call: Callable) -> int | None:
    """The page faults of a call after the first; None where the system does not count them."""
    try:
        import resource
    except ImportError:  # on Windows
        return None
    call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


# --- pictures -------------------------------------------------------------------------------------


@figure
def memory(batch: int, needed: Mapping[str, Sequence[int]], network: Network = NETWORK) -> Axes:
    """Draw what the memory of a training step holds; `needed` has each call's bytes, by way."""
    parameters = 4 * sum(map(math.prod, network.parameter_shapes.values()))
    rows = {"parameters, gradients": 2 * parameters, "Adam's two moments": 2 * parameters}
    rows["activations of all layers"] = 4 * batch * sum(math.prod(p.shape) for p in network.places)
    for way, sizes in needed.items():
        rows |= {f"{way}: largest call": max(sizes), f"{way}: all calls": sum(sizes)}
    _, ax = plt.subplots(figsize=(7.5, 1 + 0.4 * len(rows)))
    inks = [GREY] * 3 + [ink for ink in colors(list(needed)) for _ in range(2)]
    bars = ax.barh(list(rows), [size / MIB for size in rows.values()], 0.66, color=inks)
    ax.bar_label(bars, [in_bytes(size) for size in rows.values()], padding=4, fontsize=9)
    ax.set(xlim=(0, 1.2 * max(rows.values()) / MIB), xlabel="MiB")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    return ax


@measured
def over_sizes(panels: Mapping[str, Mapping], costs: Mapping) -> np.ndarray:
    """Draw µs for each image over the size of a micro-batch, in panels, and where caches end.

    By (way, images), a panel has the median and its interval in seconds, `costs` seconds and bytes.
    """
    caches = machine.describe()["caches"] or {}
    _, axes = plt.subplots(1, len(panels), figsize=(10, 3.8), sharey=True)
    for ax, (name, timings) in zip(axes, panels.items(), strict=True):
        methods, sizes = (list(dict.fromkeys(one)) for one in zip(*timings, strict=True))
        for way, ink in zip(methods, colors(methods), strict=True):
            middle, low, high = 1e6 * np.array([timings[way, n] for n in sizes]).T
            error = middle - low, high - middle
            ax.errorbar(sizes, middle, error, fmt="o-", color=ink, markersize=4, label=way)
            rooms = [costs[way, n][1] for n in sizes]
            for level in ("L2", "L3"):
                n = np.interp(caches.get(level, np.inf), rooms, sizes, left=np.nan, right=np.nan)
                if n > 0:  # else the workspaces are all smaller, or all larger
                    point = n, np.interp(np.log(n), np.log(sizes), middle)
                    ax.plot(*point, "|", color=ink, markersize=18, markeredgewidth=2)
                    note(ax, level, point, (0, -20), color=ink, ha="center")
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.set(title=name, xlabel="images in a micro-batch", ylim=(0, None))
    axes[0].set_ylabel("µs for each image")
    axes[0].legend(frameon=False, loc="lower left", ncols=3)
    return axes


@measured
def front(plans: Sequence, whole: Mapping, run: Sequence[tuple[float, float]]) -> Axes:
    """Draw a Pareto front of plans, the ways that take the whole batch, and, as crosses, what ran.

    A plan has `seconds` and `workspace`; `run` has pairs of a workspace and seconds.
    """
    _, ax = plt.subplots(figsize=(7.5, 4))
    room, times = np.array([(p.workspace / KIB, 1e3 * p.seconds) for p in plans]).T
    ax.step([*room, 2 * room[-1]], [*times, times[-1]], where="post", color=GREY, linewidth=1.2)
    ax.plot(room, times, "o", color=GREY, markersize=4, label="planned")
    for plan in plans:
        note(ax, f"{plan}", (plan.workspace / KIB, 1e3 * plan.seconds), (3, 5), fontsize=7)
    for (name, plan), ink in zip(whole.items(), colors(list(whole)), strict=True):
        point = plan.workspace / KIB, 1e3 * plan.seconds
        ax.plot(*point, "s", color=ink, markersize=7, markerfacecolor="none", markeredgewidth=1.6)
        note(ax, f"{name}, whole", point, (-6, 8), color=ink, ha="right")
    ran = np.array(run).T
    ax.plot(ran[0] / KIB, 1e3 * ran[1], "x", color=INK, markersize=8, label="run")
    ax.legend(frameon=False, loc="lower left")
    ax.set_xscale("symlog", linthresh=256)
    ax.set(xlabel="workspace", ylabel="ms for the batch", ylim=(0, 1.1 * ax.get_ylim()[1]))
    ax.minorticks_off()
    ax.xaxis.set_major_locator(FixedLocator([0, *(2**k for k in range(9, 25, 2))]))
    ax.xaxis.set_major_formatter(lambda kib, _: in_bytes(kib * KIB))
    return ax


@measured
def over_time(steps: Mapping[str, tuple[Mapping, float]]) -> np.ndarray:
    """Draw each call's workspace while a step runs: a step has plans and reserved bytes, a line."""
    _, axes = plt.subplots(len(steps), 1, figsize=(9, 1.7 * len(steps)), sharex=True, sharey=True)
    for ax, (name, (plans, reserved)) in zip(axes, steps.items(), strict=True):
        begin = 0.0
        for seconds, workspace, pieces in plans.values():
            look = {"color": colors([max(pieces, key=lambda p: p[1])[0]]), "edgecolor": "white"}
            ax.bar(begin, max(workspace / MIB, 0.03), 1e3 * seconds, align="edge", **look)
            begin += 1e3 * seconds
        ax.axhline(reserved / MIB, color=INK, linewidth=1)
        ax.set_title(f"{name}: {in_bytes(reserved)} reserved", fontsize=9, loc="left")
        ax.set_ylabel("MiB")
    axes[-1].set_xlabel("ms, as planned; orange by im2col, pink by Winograd, the rest direct")
    return axes


def in_bytes(size: float) -> str:
    """Bytes with three significant digits, such as "2.05 MiB"."""
    unit, name = (MIB, "MiB") if size >= MIB else (KIB, "KiB")
    return f"{digits(size / unit)} {name}"


# --- a challenge under a cap of workspace ---------------------------------------------------------


def challenge(mine: Callable, arrays: Sequence, calls: Mapping, cap: float, repeats=9):
    """Prove a kernel of `conv_forward` and its workspace, and draw its time beside those of calls.

    Prints the verdict first; returns None, and times nothing, where the kernel is wrong, still
    empty, or allocates more than `cap` bytes for these arrays.
    """
    if empty(mine):
        Verdict(False, "conv_forward: the challenge is still open").report()
        return None
    if not exercise("conv_forward", mine, cases=TRANSFORMED, normwise=ROUNDING):
        return None
    needed = allocated(mine, arrays)
    said = f"{needed:,} bytes of workspace, where the cap is {cap:,.0f}"
    if not Verdict(needed <= cap + BUFFERS, f"conv_forward: {said}").report():
        return None
    calls = {**calls, MINE: functools.partial(mine, *arrays)}
    timings, base = timing.compare(calls, repeats=repeats), next(iter(calls))
    times = timing.ratio(timings[MINE], timings[base]).value
    title = f"Your conv_forward takes {times:.3g} times as long as {base}"
    print(f"{title}.")
    return charts.speedups(timings, base=base, title=title)


# --- the exercises --------------------------------------------------------------------------------


def differs(mine, model, draw, known=()):
    """What is wrong with a function, in words, on known arguments and those that `draw` makes."""
    rng = kinds.generator()
    for given in itertools.chain(known, (draw(rng) for _ in range(TABLES))):
        got, expected = mine(**given), model(**given)
        if got != expected and not math.isclose(got, expected):
            return f"expected {expected:g}, got {got!r}, with {given}"
    return ""


# Two images take the least time by FFT, three by im2col alone: a single one by FFT does not fit.
NOT_BY_THE_BEST_OF_TWO = {
    "times": {"im2col": {1: 3.0, 2: 1.0}, "FFT": {1: 1.0, 2: 4.0}},
    "workspaces": {"im2col": {1: 1, 2: 2}, "FFT": {1: 2, 2: 1}},
    "n_images": 3,
    "cap": 1,
    "change": 4.0,
}


def draw_tables(rng):
    """Times and workspaces of two ways, by size; a batch; a cap; and what a change of way costs."""
    sizes = sorted(rng.choice(np.arange(1, 8), 4, replace=False).tolist())
    times = {a: {m: float(rng.integers(1, 30)) for m in sizes} for a in ("im2col", "FFT")}
    return {
        "times": times,
        "workspaces": {a: {m: int(rng.integers(1, 10)) for m in sizes} for a in times},
        "n_images": int(rng.integers(1, 16)),
        "cap": int(rng.integers(1, 10)),
        "change": float(rng.choice([0, 3, 9])),
    }


@kinds.tested(
    lambda mine: differs(mine, recurrence.model(), draw_tables, [NOT_BY_THE_BEST_OF_TWO]),
    "T(n) is not enough: what a micro-batch costs depends on the way of the one before it. Let "
    "T(n, a) be the least seconds for n images of which the last are computed by way a.",
    "The first micro-batch changes nothing. The cap holds for each by itself. Where nothing "
    "fits, T(n, a) is math.inf, and infinity plus something stays that.",
)
def recurrence(times, workspaces, n_images, cap, change):
    """The state is (n, last way), so that the price of a change is known when it is paid."""
    least = [dict.fromkeys(times, 0.0)]
    for n in range(1, n_images + 1):
        least.append(dict.fromkeys(times, math.inf))
        for name, by_size in times.items():
            for size, seconds in by_size.items():
                if size <= n and workspaces[name][size] <= cap:
                    before = least[n - size]
                    rest = min(before[name], min(before.values()) + change)
                    least[n][name] = min(least[n][name], rest + seconds)
    return min(least[n_images].values())


def greedy(times, n_images):
    """The seconds if the size with the least time per image is taken while it fits; or infinity."""
    seconds = 0.0
    for size in sorted(times, key=lambda size: times[size] / size):
        seconds += n_images // size * times[size]
        n_images %= size
    return math.inf if n_images else seconds


def try_example(answer):
    """What is wrong with times and a batch on which the greedy planner should fail."""
    times, n_images = answer()
    sizes = all(isinstance(size, int | np.integer) and size > 0 for size in times)
    if not sizes or not all(0 < seconds < math.inf for seconds in times.values()):
        return f"expected positive seconds by positive whole sizes, got {times!r}"
    taken = greedy(times, n_images)
    least = recurrence.model()({"": times}, {"": dict.fromkeys(times, 0)}, n_images, 0, 0)
    if taken == math.inf:
        return f"expected sizes with which the greedy planner ends, got {times!r}: images are left"
    if math.isclose(taken, least):
        return f"the greedy planner finds {taken:g} seconds, and no plan takes less"
    return ""


@kinds.tested(
    try_example,
    "Which micro-batches does greed leave for the last images? Make those slow.",
    "Two sizes and 1: the best per image does not divide the batch, but the other does.",
)
def against_greed():
    """Greed takes 4 and is left with 1 + 1, at 3 + 2 + 2; two micro-batches of 3 take 6."""
    return {1: 2.0, 3: 3.0, 4: 3.0}, 6


def try_pieces(mine):
    """What is wrong with the gradient of a mean loss in micro-batches."""
    rng = kinds.generator()
    for n_images, most in itertools.product((1, 4, 7), (1, 3, 4, 9)):
        x, y = rng.standard_normal((2, n_images, 5))
        seen = []

        def mean_gradient(x, y, seen=seen):
            seen.append(len(x))
            return (x * np.sin(y)).mean(0)

        got, at = mine(mean_gradient, x, y, most), f"for {n_images} images, at most {most} at once"
        if max(seen, default=0) > most:
            return f"a micro-batch of {max(seen)} images {at}"
        if not np.allclose(got, mean_gradient(x, y)):
            return f"a wrong gradient {at}, from micro-batches of {seen[:-1]}"
    return ""


@kinds.tested(
    try_pieces,
    "A mean over few images weighs each of them more. By what is it a sum?",
    "The last micro-batch may be smaller: its mean must not weigh as much as the others'.",
)
def gradient_in_pieces(mean_gradient, x, y, most):
    """Times its images a mean is a sum; the sum of all, divided by all images, is their mean."""
    total = 0
    for first in range(0, len(x), most):
        some = slice(first, first + most)
        total = total + len(x[some]) * mean_gradient(x[some], y[some])
    return total / len(x)


def draw_pieces(rng):
    """Seconds by size, where larger pieces are a little slower for each image; a batch; a noise."""
    chosen = sorted({1, *rng.choice(np.arange(2, 9), 3, replace=False).tolist()})
    return {
        "times": {m: float(m * rng.uniform(1, 1.2)) for m in chosen},
        "n_images": int(rng.integers(4, 20)),
        "noise": float(rng.choice([0, 0.02, 0.1])),
    }


@kinds.tested(
    lambda mine: differs(mine, fewest_pieces.model(), draw_pieces),
    "Let T(k, n) be the least seconds for n images in exactly k pieces: how does T(k, n) follow "
    "from T(k − 1, …)?",
    "The answer is the smallest k whose T(k, n_images) is at most (1 + noise) times the least T.",
)
def fewest_pieces(times, n_images, noise):
    """One more dimension, the number of pieces: T(k, n) is the least of T(k − 1, n − m) + t(m)."""
    least = [[0.0] + [math.inf] * n_images]
    for _ in range(n_images):
        before = least[-1]
        now = [
            min((before[n - m] + t for m, t in times.items() if m <= n), default=math.inf)
            for n in range(n_images + 1)
        ]
        least.append(now)
    best = min(row[n_images] for row in least)
    return next(k for k, row in enumerate(least) if row[n_images] <= (1 + noise) * best)


@kinds.choice(
    ["the sum of gradients", "the learning rate", "mean and variance", "rounding"],
    "Which layer's result for an image depends on the other images?",
    "Gradients may be added up only if each image's results are the same, cut or whole.",
)
def what_differs():
    """Batch normalisation takes both over 8 images, not 64: the network computes something else."""
    return "mean and variance"
