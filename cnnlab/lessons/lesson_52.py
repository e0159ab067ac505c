"""The exercises of lesson 52, and a stepper through schedules of a pipeline."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cnnlab.check import kinds
from cnnlab.kernels import find
from cnnlab.measure.timing import Timing, compare
from cnnlab.network import Conv, Network, Place
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import (
    COLORS,
    GREY,
    INK,
    LAYERS,
    OTHERS,
    as_rows,
    figure,
    label_ends,
    note,
    style,
)
from cnnlab.ranks.pipeline import UNITS, Span, Task, held, held_over_time, timed, wrong


def steps(plans: Mapping[str, Sequence[Span]]) -> Stepper:
    """A stepper through plans below each other: a frame for each time at which tasks begin.

    The tasks that begin are framed. The counter is how many micro-batches each rank holds: from the
    begin of their forward pass to the end of their backward pass.
    """
    times = sorted({span.begin for spans in plans.values() for span in spans})
    last = max(span.end for spans in plans.values() for span in spans)
    n_ranks = 1 + max(span.rank for spans in plans.values() for span in spans)
    frames, captions = [], []
    for now in times:
        counts = []
        with style():
            page = Figure((4.4, 0.4 + len(plans) * (0.35 + 0.25 * n_ranks)))
            panels = page.subplots(len(plans), 1, sharex=True, squeeze=False)[:, 0]
            for ax, (name, spans) in zip(panels, plans.items(), strict=True):
                begun, kept = [span for span in spans if span.begin <= now], [0] * n_ranks
                for rank, task, begin, end in begun:
                    look = {"edgecolor": INK if begin == now else "white", "lw": 1.5}
                    ax.barh(rank, end - begin, 0.8, begin, color=KINDS[task.kind][1], **look)
                    ax.text((begin + end) / 2, rank, task.micro, ha="center", va="center")
                    kept[rank] += (task.kind == "F") - (task.kind == "B" and end <= now)
                ax.set(title=name, xlim=(0, last), ylim=(n_ranks - 0.5, -0.5), ylabel="rank")
                ax.set_yticks(range(n_ranks))
                ax.grid(visible=False)
                counts.append(f"{name}: ranks hold {', '.join(map(str, kept))}")
        frames.append(page)
        captions.append(f"Time {now:g}. {'; '.join(counts)} micro-batches.")
    title = "Blue: forward; brown: backward; the number is the micro-batch"
    return stepper(frames, title=title, captions=captions)


@kinds.formula(
    lambda rng: {
        "p": int(rng.integers(1, 12)),
        "m": int(rng.integers(1, 40)),
        "forward": float(rng.uniform(1, 3)),
        "backward": float(rng.uniform(1, 6)),
    },
    "Follow the last micro-batch: how many tasks does rank 0 do, and how long does it wait?",
    "Its m forward and m backward passes, and p − 1 of each on the other ranks meanwhile.",
)
def units(p, m, forward, backward):
    """m passes of its own, and p − 1 steps up and down for which it waits."""
    return (m + p - 1) * (forward + backward)


@kinds.formula(
    lambda rng: {
        "p": int(rng.integers(2, 20)),  # half of the shares are met exactly, also by floats
        "most": float(rng.choice([2.0 ** -rng.integers(1, 5), rng.uniform(0.05, 0.5)])),
    },
    "Set (p − 1) / (m + p − 1) equal to it, and solve for m.",
    "m is a whole number: which way must you round?",
)
def micro_batches(p, most):
    """(p − 1) / (m + p − 1) ≤ x means m ≥ (p − 1) (1 − x) / x."""
    from math import ceil

    return max(1, ceil((p - 1) * (1 - most) / most))


def rows_are_right(mine) -> str:
    """What is wrong with a function that says which rows of a layer's input a rank needs."""
    for a, b in ((0, 1), (0, 6), (3, 8), (5, 6), (4, 4)):
        for kernel, stride in ((1, 1), (3, 1), (5, 1), (2, 2), (4, 4), (5, 3), (2, 3)):
            rows = [row * stride + k for row in range(a, b) for k in range(kernel)]
            expected = (min(rows), max(rows) + 1) if rows else None
            got = tuple(mine(a, b, kernel, stride))
            at = f"rows({a}, {b}, kernel={kernel}, stride={stride})"
            if expected is None and got[0] != got[1]:
                return f"{at}: expected an empty range, as the rank has no row, got {got}"
            if expected is not None and got != expected:
                return f"{at}: expected {expected}, got {got}"
    return ""


@kinds.tested(
    rows_are_right,
    "Which rows does the window of the first output row cover, and which that of the last?",
    "Row p of the output covers the rows from p times the stride, as many as the kernel has; the "
    "last one is b − 1.",
)
def rows(a, b, kernel, stride):
    """To the last row of the last window: S rows for each row of output, and K − S more.

    A rank without a row needs none.
    """
    return (a * stride, (b - 1) * stride + kernel) if a < b else (0, 0)


def tasks_are_right(mine) -> str:
    """What is wrong with a function that makes a rank's list of tasks: 1F1B is wanted."""
    for size, n_micro in ((1, 1), (1, 5), (2, 4), (4, 8), (5, 3), (3, 7)):
        at = f"{size} ranks, {n_micro} micro-batches"
        group = [
            [Task(kind, rank, i) for kind, i in mine(rank, size, n_micro)] for rank in range(size)
        ]
        if fault := wrong(group, size, n_micro):
            return f"{at}: {fault}"
        if any(task.kind == "W" for tasks in group for task in tasks):
            return f"{at}: expected F and B alone, got W"
        end, least = max(span.end for span in timed(group)), 2 * (n_micro + size - 1)
        if end > least:
            return f"{at}: takes {end:g} units, expected {least}"
        for rank, tasks in enumerate(group):
            if max(held(tasks)) > size - rank:
                most = max(held(tasks))
                return f"{at}: rank {rank} holds {most} micro-batches, expected {size - rank}"
    return ""


@kinds.tested(
    tasks_are_right,
    "How many forward passes come first? Let rank r begin with P − r of them; there may be fewer.",
    "Then one backward, one forward, in turn, until there is nothing left to take forward.",
)
def tasks(rank, size, n_micro):
    """P − r forward, then one back for each one forward: so many are held, and never more."""
    first = min(size - rank, n_micro)
    result = [("F", i) for i in range(first)]
    for i in range(n_micro):
        result.append(("B", i))
        if first + i < n_micro:
            result.append(("F", first + i))
    return result


@kinds.formula(
    lambda rng: {"n": int(rng.integers(1, 50)) * 1000, "n_ranks": int(rng.integers(2, 64))},
    "An all-gather of n numbers brings each rank all but its own n / P. How many are there a step?",
    "Two all-gathers, forward and backward, and a reduce-scatter, which is one turned round.",
    rtol=1e-3,
)
def sharded_bytes(n, n_ranks):
    """Two all-gathers and a reduce-scatter, each of which brings (P − 1) / P of n float32."""
    return 3 * 4 * n * (n_ranks - 1) / n_ranks


# --- what half of a layer costs -------------------------------------------------------------------

HALVES = "whole", "half of the filters", "half of the rows"


def half_layers(network: Network, n_images: int = 64, repeats: int = 9) -> dict[str, Timing]:
    """Seconds of all convolutions of a network, forward and backward, and of their halves.

    Half of the filters needs the whole input; half of the rows of the output, the halo with them.
    """
    layers = [place for place in network.places if isinstance(place.layer, Conv)]
    calls = {half: [passes(place, n_images, half) for place in layers] for half in HALVES}
    together = {
        half: lambda group=group: [call() for call in group] for half, group in calls.items()
    }
    return compare(together, repeats=repeats)


def passes(place: Place, n_images: int, half: str) -> Callable[[], None]:
    """The three kernels of a convolution on noise, or of half of it, as one call."""
    (c, h, w), (f, rows, columns), k = place.input_shape, place.shape, place.layer.kernel
    if half == "half of the filters":
        f //= 2
    if half == "half of the rows":
        rows //= 2
        h = rows + k - 1
    rng = np.random.default_rng(0)
    shapes = (n_images, c, h, w), (f, c, k, k), (f,), (n_images, f, rows, columns)
    x, weights, bias, dy = (rng.random(shape, np.float32) for shape in shapes)
    y, dx, dw = np.empty_like(dy), np.empty_like(x), np.empty_like(weights)
    forward, inputs, gradients = (
        find("vector").kernel(f"conv_{name}")
        for name in ("forward", "backward_input", "backward_weights")
    )

    def call() -> None:
        forward(x, weights, bias, y)
        inputs(dy, weights, dx)
        gradients(x, dy, dw)

    return call


# --- pictures of a network that is cut among ranks: schedules, what is held, halos, the grid ------

KINDS = {"F": ("forward", "#7fb0d8"), "B": ("backward", "#d49a4e"), "W": ("weights", "#9cc99a")}
MINE = "yours"


@figure
def plans(group: Mapping[str, Sequence[Span]]) -> np.ndarray:
    """Draw which rank does which task when: a panel for each schedule, a row for each rank.

    The number is the micro-batch's; of several stages of a rank, the later are lighter. The dashed
    line is the end.
    """
    n = [1 + max(span.rank for span in spans) for spans in group.values()]
    size = 8, 0.6 + sum(0.5 + 0.25 * k for k in n)
    _, axes = plt.subplots(len(group), 1, figsize=size, sharex=True, squeeze=False)
    for ax, (name, spans), ranks in zip(axes[:, 0], group.items(), n, strict=True):
        for span in spans:
            look = {"color": KINDS[span.task.kind][1], "edgecolor": "white", "linewidth": 0.8}
            alpha = 1.0 if span.task.stage < ranks else 0.6
            width = span.end - span.begin
            ax.barh(span.rank, width, 0.86, span.begin, alpha=alpha, **look)
            at = {"transform": ax.transData, "ha": "center", "va": "center", "fontsize": 7}
            middle = span.begin + width / 2
            ax.figure.text(middle, span.rank, span.task.micro, color=INK, **at)  # no label of ax
        end = max(span.end for span in spans)
        ax.axvline(end, color=GREY, linestyle="--", linewidth=1.2)
        thin = any(span.task.stage >= ranks for span in spans)
        said = " (dark: a rank's first stage, light: its second)" * thin
        ax.set_title(f"{name}: {end:g} units{said}", fontsize=10, loc="left")
        ax.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
        as_rows(ax, range(ranks))
    kinds = {span.task.kind for spans in group.values() for span in spans}
    keys = [Patch(color=color, label=label) for k, (label, color) in KINDS.items() if k in kinds]
    look = {"frameon": False, "fontsize": 8, "borderaxespad": 0}
    axes[0, 0].legend(handles=keys, ncols=3, loc="lower right", bbox_to_anchor=(1, 1.02), **look)
    axes[-1, 0].set_xlabel("units of time: a forward pass of a rank's layers takes one")
    return axes[:, 0]


@figure
def memory(group: Mapping[str, Sequence[Span]]) -> np.ndarray:
    """Draw how many micro-batches each rank holds over time: a panel for each schedule.

    One in one of a rank's two thin stages counts as a half.
    """
    shape = 1, len(group)
    _, axes = plt.subplots(*shape, figsize=(8, 2.4), sharex=True, sharey=True, squeeze=False)
    for ax, (name, spans) in zip(axes[0], group.items(), strict=True):
        by_rank = held_over_time(spans)
        share = len(by_rank) / (1 + max(span.task.stage for span in spans))
        for rank, counts in enumerate(by_rank):
            times, n = zip(*((time, share * n) for time, n in counts), strict=True)
            color = (LAYERS[:2] + LAYERS[4:])[rank % 4]
            width = 1.2 * (len(by_rank) - rank)  # so that one shows under the next
            ax.step(times, n, where="post", color=color, label=f"rank {rank}", linewidth=width)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("units of time")
    axes[0, 0].set_ylabel("micro-batches held")
    axes[0, 0].locator_params(axis="y", integer=True)
    axes[0, min(1, len(group) - 1)].legend(frameon=False, fontsize=8)
    return axes[0]


@figure
def halos(layers: Sequence) -> Axes:
    """Draw what each rank owns of every layer's input (filled), and what it needs (framed).

    `layers` are those of `distributed.layout.shares`; each is drawn from its first row, on top.
    """
    n_ranks = len(layers[0].owned)
    _, ax = plt.subplots(figsize=(8, 2.8))
    for i, layer in enumerate(layers):
        for rank in range(n_ranks):
            left, color = i + 0.8 * rank / n_ranks, OTHERS[rank % len(OTHERS)]
            (a, b), (c, d) = layer.owned[rank], layer.needed[rank]
            wide = 0.72 / n_ranks
            ax.bar(left, b - a, wide, a, align="edge", color=color, alpha=0.35, linewidth=0)
            look = {"fill": False, "edgecolor": color, "linewidth": 1.6}
            ax.bar(left, d - c, wide, c, align="edge", **look)
    ax.set_xticks(np.arange(len(layers)) + 0.36, [layer.name for layer in layers], fontsize=8)
    ax.tick_params(axis="x", rotation=35)
    ax.set(ylabel="row of the input", ylim=(max(layer.length for layer in layers) + 0.5, -0.5))
    ax.grid(axis="x", visible=False)
    keys = [Patch(color=OTHERS[r % len(OTHERS)], label=f"rank {r}") for r in range(n_ranks)]
    ax.legend(handles=keys, frameon=False, fontsize=8, loc="lower right")
    return ax


@figure
def grid(data: int, pipeline: int, model: int) -> Axes:
    """Draw a grid of ranks: a row for each pipeline, a colour for each stage."""
    _, ax = plt.subplots(figsize=(7, 0.8 + 0.6 * data))
    for rank in range(data * pipeline * model):
        i, j, k = np.unravel_index(rank, (data, pipeline, model))
        x, y = j + 0.8 * k / model, i
        look = {"color": LAYERS[j % len(LAYERS)], "edgecolor": "white", "linewidth": 2}
        ax.bar(x, 0.6, 0.8 / model, y - 0.3, align="edge", **look)
        ink = "white" if j % len(LAYERS) in (0, 5) else INK
        ax.text(x + 0.4 / model, y, f"rank {rank}", ha="center", va="center", color=ink)
        if k == 0 and j + 1 < pipeline:
            arrow = {"arrowstyle": "-|>", "color": INK}
            ax.annotate("", (j + 1, y), (j + 0.8, y), arrowprops=arrow)
    ax.set_xticks(np.arange(pipeline) + 0.4, [f"stage {j}" for j in range(pipeline)])
    ax.set_yticks(range(data), [f"share {i} of a batch" for i in range(data)])
    ax.set(xlim=(-0.05, pipeline - 0.15))
    ax.grid(visible=False)
    ax.tick_params(axis="x", length=0)
    return as_rows(ax, range(data))


@figure
def bars(values: Mapping[str, float], unit: str) -> Axes:
    """Draw a number for each name as a bar."""
    _, ax = plt.subplots(figsize=(7, 0.8 + 0.3 * len(values)))
    ax.barh(list(values), list(values.values()), 0.62, color=COLORS["vector"])
    for y, value in enumerate(values.values()):
        note(ax, f"{value:,.0f}", (value, y), (5, 0), va="center")
    ax.set(xlabel=unit, xlim=(0, 1.2 * max(values.values())))
    return as_rows(ax, list(values))


@figure
def by_ranks(n_ranks: Sequence[int], series: Mapping[str, Sequence[float]], ylabel: str) -> Axes:
    """Draw a quantity over the number of ranks; the last line is dashed, a bound."""
    _, ax = plt.subplots(figsize=(7, 3))
    labels = []
    for i, (name, values) in enumerate(series.items()):
        bound = i == len(series) - 1
        color = GREY if bound else OTHERS[i % len(OTHERS)]
        look = {"lw": 1} if bound else {"zorder": 3 - i / len(series)}  # the first is on top
        ax.plot(n_ranks, values, "--" if bound else "o-", color=color, **look)
        labels.append((n_ranks[-1], values[-1], name, color))
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xticks(n_ranks, [str(n) for n in n_ranks])
    ax.set(xlabel="ranks", ylabel=ylabel)
    label_ends(ax, labels)
    return ax


def challenge_schedule(
    mine: Sequence[Sequence[Task]] | None,
    rungs: Mapping[str, Sequence[Sequence[Task]]],
    n_micro: int,
) -> np.ndarray | None:
    """Prove a plan, say how long it takes and what it holds, and draw it below the rungs.

    A plan is a list of tasks for each rank, with the weights' gradients apart ("W") or not, and
    then "B" takes two units. Returns None where the plan is none yet: only what is wrong is said.
    """
    if not mine or mine is ...:
        print("your plan: not yet there")
        return None
    plan = [[Task(*task) for task in tasks] for tasks in mine]
    if fault := wrong(plan, len(next(iter(rungs.values()))), n_micro):
        print(f"your plan: {fault}")
        return None
    everyone = {**rungs, MINE: plan}
    drawn = {name: timed(group, pipelines_units(group)) for name, group in everyone.items()}
    ends = {name: max(span.end for span in spans) for name, spans in drawn.items()}
    for name, group in everyone.items():
        most = [max(held(tasks)) for tasks in group]
        print(f"{name}: {ends[name]:g} units, at most {most} micro-batches held by rank")
    return plans(drawn, title=f"Your plan takes {ends[MINE]:g} units")


def pipelines_units(group: Sequence[Sequence[Task]]) -> dict[str, float]:
    """The time of each kind of task: "B" is twice as long where it finds the weights', too."""
    split = any(task.kind == "W" for tasks in group for task in tasks)
    return UNITS if split else UNITS | {"B": 2.0}
