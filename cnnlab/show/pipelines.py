"""Pictures of a network that is cut among ranks: schedules, what is held, halos, the grid."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from cnnlab.ranks.pipeline_schedules import Task
from cnnlab.ranks.pipeline_times import UNITS, Span, held, held_over_time, timed, wrong
from cnnlab.show.style import COLORS, GREY, INK, LAYERS, OTHERS, as_rows, figure, label_ends, note

KINDS = {"F": ("forward", "#7fb0d8"), "B": ("backward", "#d49a4e"), "W": ("weights", "#9cc99a")}
MINE = "yours"


@figure
def plans(of: Mapping[str, Sequence[Span]]) -> np.ndarray:
    """Draw which rank does which task when: a panel for each schedule, a row for each rank.

    The number is the micro-batch's; of several stages of a rank, the later are lighter. The dashed
    line is the end.
    """
    n = [1 + max(span.rank for span in spans) for spans in of.values()]
    size = 8, 0.6 + sum(0.5 + 0.25 * k for k in n)
    _, axes = plt.subplots(len(of), 1, figsize=size, sharex=True, squeeze=False)
    for ax, (name, spans), ranks in zip(axes[:, 0], of.items(), n, strict=True):
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
        told = " (dark: a rank's first stage, light: its second)" * thin
        ax.set_title(f"{name}: {end:g} units{told}", fontsize=10, loc="left")
        ax.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
        as_rows(ax, range(ranks))
    kinds = {span.task.kind for spans in of.values() for span in spans}
    keys = [Patch(color=color, label=label) for k, (label, color) in KINDS.items() if k in kinds]
    look = {"frameon": False, "fontsize": 8, "borderaxespad": 0}
    axes[0, 0].legend(handles=keys, ncols=3, loc="lower right", bbox_to_anchor=(1, 1.02), **look)
    axes[-1, 0].set_xlabel("units of time: a forward pass of a rank's layers takes one")
    return axes[:, 0]


@figure
def memory(of: Mapping[str, Sequence[Span]]) -> np.ndarray:
    """Draw how many micro-batches each rank holds over time: a panel for each schedule.

    One in one of a rank's two thin stages counts as a half.
    """
    shape = 1, len(of)
    _, axes = plt.subplots(*shape, figsize=(8, 2.4), sharex=True, sharey=True, squeeze=False)
    for ax, (name, spans) in zip(axes[0], of.items(), strict=True):
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
    axes[0, min(1, len(of) - 1)].legend(frameon=False, fontsize=8)
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
    drawn = {name: timed(of, units(of)) for name, of in everyone.items()}
    ends = {name: max(span.end for span in spans) for name, spans in drawn.items()}
    for name, of in everyone.items():
        most = [max(held(tasks)) for tasks in of]
        print(f"{name}: {ends[name]:g} units, at most {most} micro-batches held by rank")
    return plans(drawn, title=f"Your plan takes {ends[MINE]:g} units")


def units(of: Sequence[Sequence[Task]]) -> dict[str, float]:
    """The time of each kind of task: "B" is twice as long where it finds the weights', too."""
    split = any(task.kind == "W" for tasks in of for task in tasks)
    return UNITS if split else UNITS | {"B": 2.0}
