"""Lesson 51, memory or time: arguments, times of micro-batches, drawings, and the exercises."""

import functools
import itertools
import math
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, LogLocator

from cnnlab.check import exercise, kinds
from cnnlab.check.inputs import TRANSFORMED
from cnnlab.check.kinds import empty
from cnnlab.check.verdict import Verdict
from cnnlab.kernels import CONTRACT, reference
from cnnlab.measure import machine, timing
from cnnlab.measure.timing import Timing, digits
from cnnlab.network import Conv, Dense, MaxPool, Network, ReLU, Sigmoid
from cnnlab.plots import charts
from cnnlab.plots.challenge import MINE
from cnnlab.plots.style import GREY, INK, colors, figure, label_ends, measured, note

TABLES = 40  # random ones that a planner is tried on
SEVERAL = 16  # images in a sample, or more
KIB, MIB = 2**10, 2**20
ROUNDING = 100  # times that of a sum: what Winograd's transforms lose
BUFFERS = 2**17  # bytes that NumPy takes now and then, whatever the size

# --- the convolutions of a step -------------------------------------------------------------------


BLOCK = Conv(32, 5), ReLU()
NETWORK = Network(
    (Conv(16, 5), ReLU(), *BLOCK, *BLOCK, *BLOCK, MaxPool(4), Dense(10), Sigmoid()),
)


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


def time_pieces(
    call: Callable, conv: Convolution, algorithms: Mapping, sizes: Sequence[int], repeats: int
) -> dict[tuple[str, int], Timing]:
    """The Timing of a micro-batch by each algorithm and size: (algorithm, images) → Timing.

    `call(conv, pieces, *arrays)` computes micro-batches one after the other. A sample takes
    several, as in a plan, and is the time of one. Each result is first compared with that of the
    first algorithm.
    """
    arrays, first = conv.arguments(max(sizes)), next(iter(algorithms))
    calls, counts = {}, {}
    for size in sizes:
        n = counts[size] = max(1, min(SEVERAL, max(sizes)) // size)
        given = conv.some_images(arrays, slice(n * size))
        expected = np.empty_like(given[-1])
        call(conv, ((first, n * size),), *given[:-1], expected)
        for name in algorithms:
            calls[name, size] = functools.partial(call, conv, ((name, size),) * n, *given)
            given[-1][:] = np.nan
            calls[name, size]()
            timing.same(given[-1], expected, name=f"{conv.operation} by {name}", rtol=1e-3)
    return {
        piece: Timing(piece[0], tuple(s / counts[piece[1]] for s in timed.samples))
        for piece, timed in timing.compare(calls, repeats=repeats).items()
    }


# --- pictures -------------------------------------------------------------------------------------


def memory(batch: int, workspaces: Mapping[str, float], network: Network = NETWORK) -> Axes:
    """Draw what the memory of a training step holds; workspaces are those of all calls, by name."""
    parameters = 4 * sum(map(math.prod, network.parameter_shapes.values()))
    rows = {"parameters and gradients": 2 * parameters, "Adam's two means": 2 * parameters}
    rows["activations"] = 4 * batch * sum(math.prod(place.shape) for place in network.places)
    rows |= {f"workspaces of all calls, {name}": size for name, size in workspaces.items()}
    return drawn_memory(rows, title=f"Activations take {in_bytes(rows['activations'])}")


@figure
def drawn_memory(rows: Mapping[str, float]) -> Axes:
    """Draw a bar of MiB for each of the rows."""
    _, ax = plt.subplots(figsize=(7.5, 1 + 0.4 * len(rows)))
    names = [name.partition("calls, ")[2] for name in rows]
    inks = [ink if name else GREY for name, ink in zip(names, colors(names), strict=True)]
    bars = ax.barh(list(rows), [size / MIB for size in rows.values()], 0.66, color=inks)
    ax.bar_label(bars, [in_bytes(size) for size in rows.values()], padding=4, fontsize=9)
    ax.set(xlim=(0, 1.2 * max(rows.values()) / MIB), xlabel="MiB")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    return ax


@measured
def over_sizes(
    timings: Mapping[tuple[str, int], Timing], rooms: Mapping[tuple[str, int], float]
) -> np.ndarray:
    """Draw time and workspace for each image over the size of a micro-batch, by (way, images)."""
    _, axes = plt.subplots(1, 2, figsize=(10, 3.8))
    labels: tuple[list, list] = ([], [])
    names = list(dict.fromkeys(name for name, _ in timings))
    sizes = sorted({size for _, size in timings})
    for way, ink in zip(names, colors(names), strict=True):
        taken = [timings[way, n] for n in sizes]
        values = 1e6 * np.array([(t.median, t.low, t.high) for t in taken]).T / sizes
        middle, error = values[0], abs(values[1:] - values[0])
        axes[0].errorbar(sizes, middle, error, fmt="o-", color=ink, markersize=4)
        each = [rooms[way, n] / n / KIB for n in sizes]
        axes[1].plot(sizes, each, "o-", color=ink, markersize=4)
        labels[0].append((sizes[-1], middle[-1], way, ink))
        labels[1].append((sizes[-1], each[-1], way, ink))
    of_image = rooms["im2col", 1]
    for name, size in (machine.describe().get("caches") or {}).items():
        if name in ("L2", "L3") and sizes[0] < size / of_image < sizes[-1]:
            axes[0].axvline(size / of_image, color=GREY, linestyle=":", linewidth=1.2)
            note(
                axes[0],
                f"im2col fills {name}",
                (size / of_image, 0.9),
                (3, 0),
                fontsize=8,
                xycoords=("data", "axes fraction"),
            )
    for ax, ends, what in zip(axes, labels, ("µs for each image", "workspace"), strict=True):
        ax.loglog()
        ax.minorticks_off()
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.set(xlabel="images in a micro-batch", ylabel=what)
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.figure.canvas.draw()  # limits are final now
        label_ends(ax, ends)
    by_bytes(axes[1].yaxis)
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
    for (name, plan), ink in zip(whole.items(), colors(list(whole)), strict=True):
        point = plan.workspace / KIB, 1e3 * plan.seconds
        ax.plot(*point, "s", color=ink, markersize=7, markerfacecolor="none", markeredgewidth=1.6)
        note(ax, f"{name}, whole", point, (-6, 8), color=ink, ha="right")
    ran = np.array(run).T
    ax.plot(ran[0] / KIB, 1e3 * ran[1], "x", color=INK, markersize=8, label="run")
    ax.legend(frameon=False)
    ax.set_xscale("log")
    ax.set(xlabel="workspace", ylabel="ms for the batch", ylim=(0, 1.1 * ax.get_ylim()[1]))
    ax.minorticks_off()
    by_bytes(ax.xaxis)
    return ax


def by_bytes(axis) -> None:
    """Label an axis of KiB by powers of two, such as "32.0 KiB" and "1.00 MiB"."""
    axis.set_major_locator(FixedLocator([2**k for k in range(0, 25, 3)]))
    axis.set_major_formatter(lambda kib, _: in_bytes(kib * KIB))


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


def allocated(kernel: Callable, arrays: Sequence[np.ndarray]) -> int:
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


# --- the exercises --------------------------------------------------------------------------------


def draw_tables(rng):
    """Times and workspaces of two ways, by size; a batch; and a cap that leaves some out."""
    sizes = sorted(rng.choice(np.arange(1, 8), 4, replace=False).tolist())
    times = {a: {m: float(rng.integers(1, 30)) for m in sizes} for a in ("im2col", "FFT")}
    workspaces = {a: {m: int(rng.integers(1, 10)) for m in sizes} for a in times}
    return times, workspaces, int(rng.integers(1, 16)), int(rng.integers(1, 10))


def try_planner(mine):
    """What is wrong with a function that finds the least seconds, on random tables."""
    rng = kinds.generator()
    for _ in range(TABLES):
        given = draw_tables(rng)
        got, least = mine(*given), recurrence.model()(*given)
        if got != least and not math.isclose(got, least):
            times, workspaces, n_images, cap = given
            return (
                f"expected {least:g} seconds for {n_images} images under a cap of {cap}, "
                f"got {got!r}, with times {times} and workspaces {workspaces}"
            )
    return ""


@kinds.tested(
    try_planner,
    "T(0) = 0, and T(n) is the least of T(n − m) + t(a, m) over all ways a and sizes m that fit.",
    "The cap holds for each micro-batch by itself: they run one after the other. Where nothing "
    "fits, T(n) is math.inf, and infinity plus something stays that.",
)
def recurrence(times, workspaces, n_images, cap):
    """One micro-batch is the last, and what comes before it is as good as can be."""
    least = [0.0] + [math.inf] * n_images
    for n in range(1, n_images + 1):
        for name, by_size in times.items():
            for size, seconds in by_size.items():
                if size <= n and workspaces[name][size] <= cap:
                    least[n] = min(least[n], least[n - size] + seconds)
    return least[n_images]


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
    least = recurrence.model()({"": times}, {"": dict.fromkeys(times, 0)}, n_images, 0)
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
    """What is wrong with a gradient of the weights in micro-batches."""
    rng = kinds.generator()
    for n_images, most in itertools.product((1, 4, 7), (1, 3, 4, 9)):
        x, dz = (rng.standard_normal((n_images, 2, side, side)) for side in (6, 4))
        seen, exact, dw = [], np.empty((2, 2, 3, 3)), np.full((2, 2, 3, 3), np.nan)
        reference.conv_backward_weights(x, dz, exact)

        def kernel(x, dz, dw, seen=seen):
            seen.append(len(x))
            reference.conv_backward_weights(x, dz, dw)

        mine(kernel, x, dz, dw, most)
        at = f"for {n_images} images in micro-batches of at most {most}"
        if max(seen, default=0) > most:
            return f"a micro-batch of {max(seen)} images {at}"
        if not np.allclose(dw, exact):
            return f"a wrong gradient {at}, from micro-batches of {seen}"
    return ""


@kinds.tested(
    try_pieces,
    "The kernel writes over its output. Where do the sums of earlier micro-batches stay?",
    "The gradient is a sum over the images, not a mean; and the last micro-batch may be smaller.",
)
def gradient_in_pieces(kernel, x, dz, dw, most):
    """Each micro-batch gives its part of the sum; a slice takes care of the last, smaller one."""
    part = np.empty_like(dw)
    dw[:] = 0
    for first in range(0, len(x), most):
        kernel(x[first : first + most], dz[first : first + most], part)
        dw += part


def draw_pieces(rng):
    """Seconds by size, where larger pieces are a little slower for each image; a batch; a noise."""
    chosen = sorted({1, *rng.choice(np.arange(2, 9), 3, replace=False).tolist()})
    times = {m: float(m * rng.uniform(1, 1.2)) for m in chosen}
    return {
        "times": times,
        "n_images": int(rng.integers(4, 20)),
        "noise": float(rng.choice([0, 0.02, 0.1])),
    }


def try_fewest(mine):
    """What is wrong with a function that finds the fewest pieces, on random tables."""
    rng = kinds.generator()
    for _ in range(TABLES):
        given = draw_pieces(rng)
        got, least = mine(**given), fewest_pieces.model()(**given)
        if got != least:
            return f"expected {least} pieces, got {got!r}, with {given}"
    return ""


@kinds.tested(
    try_fewest,
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
    """Batch normalisation takes both over the micro-batch: the network computes something else."""
    return "mean and variance"
