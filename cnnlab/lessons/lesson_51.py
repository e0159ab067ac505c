"""The exercises of lesson 51."""

import functools
import itertools
import math
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, LogLocator

from cnnlab.check import exercise, kinds
from cnnlab.check.inputs import TRANSFORMED
from cnnlab.check.kinds import empty
from cnnlab.check.verdict import Verdict
from cnnlab.kernels import CONTRACT, reference
from cnnlab.kernels.variants.convolutions import WAYS, Way
from cnnlab.measure import timing
from cnnlab.measure.timing import Timing, digits, in_words
from cnnlab.network import Network, Place
from cnnlab.plots import charts
from cnnlab.plots.challenge import MINE
from cnnlab.plots.style import (
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

TABLES = 40  # random ones that a planner is tried on


@kinds.formula(
    lambda rng: {
        "n_images": int(rng.integers(1, 65)),
        "channels": int(rng.integers(1, 65)),
        "kernel": int(rng.integers(2, 8)),
        "height": int(rng.integers(8, 40)),
    },
    "A column for each result pixel of each image; how long is it?",
    "A map of results has (height − kernel + 1)² pixels, and a float32 four bytes.",
)
def bytes_of_columns(n_images, channels, kernel, height):
    """A window of C K² numbers for each of P² pixels of each image, four bytes a number."""
    pixels = (height - kernel + 1) ** 2
    return 4 * n_images * pixels * channels * kernel**2


def draw_cap(rng):
    """A cap, every other one too small even for the weights."""
    always, each = int(rng.integers(1000, 10**6)), int(rng.integers(1000, 10**5))
    return {"cap": int(rng.integers(0, 2 * always)), "always": always, "each": each}


@kinds.formula(
    draw_cap,
    "What is left of the cap for images, once the weights are transformed?",
    "A micro-batch has a whole number of images: round down. There may be no room for any.",
)
def images_under(cap, always, each):
    """The weights come first, whatever the micro-batch; what is left, if any, is for images."""
    return max(0, (cap - always) // each)


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
    sizes = all(isinstance(size, int) and size > 0 for size in times)
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


# --- memory or time -------------------------------------------------------------------------------

Table = Mapping[str, Mapping[int, float]]  # algorithm → images in a micro-batch → cost


class MicroBatch(NamedTuple):
    """A micro-batch: the algorithm that computes it, and its images."""

    algorithm: str
    n_images: int


class Split(NamedTuple):
    """A batch in micro-batches, with its seconds and the bytes of its workspace."""

    pieces: tuple[MicroBatch, ...]
    seconds: float
    workspace: float

    def then(self, piece: MicroBatch, seconds: float, workspace: float) -> "Split":
        """This plan, and one more micro-batch after it."""
        workspace = max(self.workspace, workspace)
        return Split((*self.pieces, piece), self.seconds + seconds, workspace)

    def __str__(self) -> str:
        counts = {piece: self.pieces.count(piece) for piece in self.pieces}
        return " + ".join(f"{n} × {size} by {name}" for (name, size), n in counts.items())


def pareto(plans: Sequence[Split]) -> list[Split]:
    """The plans that none beats: no other is as good in both seconds and workspace, and better in
    one. By growing workspace, so by falling time."""
    front: list[Split] = []
    for plan in sorted(plans, key=lambda plan: (plan.workspace, plan.seconds)):
        if not front or plan.seconds < front[-1].seconds:
            front.append(plan)
    return front


def front(costs: "Costs", fastest: Callable[..., Split | None]) -> list[Split]:
    """Every plan for a batch that is worth having: the fastest under each cap, see `pareto`."""
    caps = {size for by_size in costs.workspaces.values() for size in by_size.values()}
    plans = (fastest(costs.times, costs.workspaces, costs.n_images, cap) for cap in caps)
    return pareto(list(filter(None, plans)))


# --- what a convolution costs each way: seconds and bytes of workspace, over micro-batches --------

SEVERAL = 16  # images in a sample, or more


@dataclass(frozen=True)
class Costs:
    """The costs of one operation of a layer: way → images in a micro-batch → cost."""

    timings: Mapping[str, Mapping[int, Timing]]
    workspaces: Mapping[str, Mapping[int, int]]  # bytes

    @property
    def times(self) -> dict[str, dict[int, float]]:
        """Median seconds of a call."""
        return {
            name: {size: timing.median for size, timing in by_size.items()}
            for name, by_size in self.timings.items()
        }

    @property
    def n_images(self) -> int:
        """The images of the largest micro-batch: the whole batch."""
        return max(size for by_size in self.timings.values() for size in by_size)

    @property
    def whole(self) -> dict[str, Split]:
        """The plans that take the whole batch at once, one for each way."""
        n = self.n_images
        return {
            name: Split((MicroBatch(name, n),), by_size[n], self.workspaces[name][n])
            for name, by_size in self.times.items()
        }


def costs(
    operation: str,
    place: Place,
    sizes: Sequence[int],
    *,
    algorithms: Mapping[str, Way] = WAYS,
    repeats: int = 9,
) -> Costs:
    """Time every way on micro-batches of a layer; each result is compared with the first way's.

    A sample takes several micro-batches, one after the other as in a plan, and is the time of one.
    Where results add up over micro-batches, as gradients of the weights do, a micro-batch smaller
    than the largest counts an array more, for the sum.
    """
    arrays, first = arguments(operation, place, max(sizes)), next(iter(algorithms))
    calls, counts, bytes_of = {}, {}, {}
    for size in sizes:
        counts[size] = max(1, min(SEVERAL, max(sizes)) // size)
        given = first_images(operation, arrays, slice(counts[size] * size))
        expected = np.empty_like(given[-1])
        getattr(algorithms[first], operation)(*given[:-1], expected)
        for name, way in algorithms.items():
            pieces = Split((MicroBatch(name, size),) * counts[size], 0, 0)
            call = functools.partial(
                in_micro_batches, operation, pieces, *given, algorithms=algorithms
            )
            given[-1][:] = np.nan
            call()
            timing.same(given[-1], expected, name=f"{operation} by {name}", rtol=1e-3)
            for_sum = given[-1].nbytes if adds_up(operation) and size < max(sizes) else 0
            bytes_of[name, size] = way.workspace(operation, *letters(place, size)) + for_sum
            calls[name, size] = call
    result = {
        (name, size): Timing(name, tuple(s / counts[size] for s in timed.samples))
        for (name, size), timed in timing.compare(calls, repeats=repeats).items()
    }
    return Costs(
        {name: {size: result[name, size] for size in sizes} for name in algorithms},
        {name: {size: bytes_of[name, size] for size in sizes} for name in algorithms},
    )


def of_a_step(network: Network) -> dict[str, tuple[str, Place]]:
    """The convolutions of a training step: "conv2_forward" → ("conv_forward", its place).

    The first layer's gradient with respect to its input is none of these.
    """
    names = [name for name in network.multiply_adds if name.startswith("conv")]
    parts = {name: name.partition("_") for name in names}
    return {name: (f"conv_{what}", network[at]) for name, (at, _, what) in parts.items()}


def step_call(network: Network, plans: Mapping[str, Split]) -> Callable[[], None]:
    """A call that computes all convolutions of a step on random arrays, each as its plan says."""
    calls = []
    for name, (operation, place) in of_a_step(network).items():
        n_images = sum(piece.n_images for piece in plans[name].pieces)
        arrays = arguments(operation, place, n_images)
        calls.append(functools.partial(in_micro_batches, operation, plans[name], *arrays))

    def step() -> None:
        for call in calls:
            call()

    return step


def letters(place: Place, n_images: int) -> tuple[int, ...]:
    """N, C, F, H, W and K of a convolutional layer and a batch."""
    return (
        n_images,
        place.input_shape[0],
        place.shape[0],
        *place.input_shape[1:],
        place.layer.kernel,
    )


def arguments(operation: str, place: Place, n_images: int) -> list[np.ndarray]:
    """Random float32 arrays for an operation of a convolutional layer; the output is the last."""
    shapes = place.layer.parameter_shapes(place.input_shape)
    shapes |= {"x": (n_images, *place.input_shape), "z": (n_images, *place.shape)}
    rng = np.random.default_rng(0)
    return [
        rng.uniform(-1, 1, shapes[name.removeprefix("d")]).astype(np.float32)
        for name in CONTRACT[operation]
    ]


def first_images(operation: str, arrays: Sequence, images: slice) -> list[np.ndarray]:
    """The arguments of an operation for some images: an array of no images stays whole."""
    shapes = CONTRACT[operation].values()
    return [a[images] if group[0] == "N" else a for a, group in zip(arrays, shapes, strict=True)]


def adds_up(operation: str) -> bool:
    """Whether an operation sums over the images, so that what micro-batches give adds up."""
    return "N" not in list(CONTRACT[operation].values())[-1]


def in_micro_batches(operation: str, plan: Split, *arrays: np.ndarray, algorithms=WAYS) -> None:
    """Compute an operation of the contract as a plan says, one micro-batch after the other."""
    output, first = arrays[-1], 0
    cut = len(plan.pieces) > 1
    total = np.zeros_like(output) if cut and adds_up(operation) else None
    for name, size in plan.pieces:
        part = first_images(operation, arrays, slice(first, first + size))
        getattr(algorithms[name], operation)(*part)
        if total is not None:  # a gradient of the weights is a sum over all images
            total += output
        first += size
    if total is not None:
        output[:] = total


# --- a challenge under a cap of workspace ---------------------------------------------------------

ROUNDING = 100  # times that of a sum: what Winograd's transforms lose
BUFFERS = 2**17  # bytes that NumPy takes now and then, whatever the size


def challenge_workspace(
    operation: str, mine: Callable, place: Place, plans: Mapping[str, Split], cap: float, repeats=9
) -> Axes | None:
    """Prove a kernel with stride 1 and its workspace, and draw its time beside those of plans.

    Both work on a batch of the layer at `place`. Prints the verdict first; returns None, and times
    nothing, where the kernel is wrong, still empty, or allocates more than `cap` bytes.
    """
    if empty(mine):
        Verdict(False, f"{operation}: the challenge is still open").report()
        return None
    if not exercise(operation, mine, cases=TRANSFORMED, normwise=ROUNDING):
        return None
    n_images = sum(piece.n_images for piece in next(iter(plans.values())).pieces)
    arrays = arguments(operation, place, n_images)
    needed = allocated(mine, arrays)
    said = f"{needed:,} bytes of workspace, where the cap is {cap:,.0f}"
    if not Verdict(needed <= cap + BUFFERS, f"{operation}: {said}").report():
        return None
    calls = {
        name: functools.partial(in_micro_batches, operation, plan, *arrays)
        for name, plan in plans.items()
    }
    calls[MINE] = functools.partial(mine, *arrays)
    timings, base = timing.compare(calls, repeats=repeats), next(iter(plans))
    times = timing.ratio(timings[MINE], timings[base]).value
    title = f"Your {operation} takes {times:.3g} times as long"
    print(f"{title} as {base}.")
    return charts.speedups(timings, base=base, title=f"{title} as {base}")


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


# --- workspace against time -----------------------------------------------------------------------

KIB, MIB = 2**10, 2**20
INKS = dict(zip(WAYS, (COLORS["vector"], *OTHERS), strict=False))  # a way looks the same everywhere


@measured
def workspaces_costs(result: Costs) -> np.ndarray:
    """Draw time and workspace for each image over the size of a micro-batch, on two Axes."""
    _, axes = plt.subplots(1, 2, figsize=(10, 3.8))
    labels: tuple[list, list] = ([], [])
    for name in result.timings:
        color = INKS.get(name, INK)
        sizes = np.array(list(result.timings[name]))
        taken = list(result.timings[name].values())
        middle, low, high = 1e6 * np.array([(t.median, t.low, t.high) for t in taken]).T / sizes
        axes[0].errorbar(
            sizes, middle, [middle - low, high - middle], fmt="o-", color=color, markersize=4
        )
        bytes_each = np.array(list(result.workspaces[name].values())) / KIB
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
def workspaces_front(
    plans: Sequence[Split], whole: Mapping[str, Split], run: Sequence[tuple[float, float]] = ()
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
def plans(chosen: Mapping[str, Split]) -> Axes:
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
def shared(by_cap: Mapping[str, Mapping[str, Split]]) -> Axes:
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
    totals = [
        f"{in_words(sum(p.seconds for p in group.values()))} planned" for group in by_cap.values()
    ]
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
