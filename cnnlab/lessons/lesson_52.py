"""Lesson 52: what its layers need, pictures of plans and of what ranks hold, and the exercises."""

from collections.abc import Collection, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cnnlab.check import kinds
from cnnlab.distributed.trial import CALL, Charged, Counting, work
from cnnlab.kernels import KERNELS, Strategy
from cnnlab.network import Network
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import GREY, INK, OTHERS, as_rows, colors, figure, label_ends, style
from cnnlab.ranks.pipeline import Task, held, timed, wrong


def kernels(comm=None, rate: float = 2e9) -> Strategy:
    """The strategy "vector"; on a virtual rank, it takes CALL, and 1 / rate a multiply-add."""

    def cost(name: str, arrays: Sequence, took: float) -> float:
        return CALL + work(name, arrays) / rate

    return Charged(KERNELS["vector"], comm, cost) if comm else KERNELS["vector"]


def noise(network: Network, n_images: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of noise and their labels, the same each time."""
    rng = np.random.default_rng(0)
    x = rng.random((n_images, *network.image_shape), np.float32)
    return x, rng.integers(0, network.classes, n_images)


def loss(z: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """The summed cross-entropy of sigmoids, and the gradient of the preactivations z (N, O)."""
    y, dz = 1 / (1 + np.exp(-z)), np.empty_like(z)
    return float(KERNELS["vector"].kernel("cross_entropy")(y, labels, dz)), dz


def adam(grads: np.ndarray, state: np.ndarray, t: int, rate: float = 0.001) -> np.ndarray:
    """Adam's step t = 1, 2, …, to be taken off the parameters; its state (2, n) is updated."""
    state[0] += np.float32(0.1) * (grads - state[0])
    state[1] += np.float32(0.001) * (grads**2 - state[1])
    mean, square = state[0] / (1 - 0.9**t), state[1] / (1 - 0.999**t)
    return (rate * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)


# --- pictures -------------------------------------------------------------------------------------

KINDS = {"F": ("forward", "#7fb0d8"), "B": ("backward", "#d49a4e"), "W": ("weights", "#9cc99a")}
Spans = Mapping[tuple[int, str, int], tuple[float, float]]  # of (rank, kind, micro-batch)


@figure
def pair() -> Axes:
    """Draw two layers on two ranks: the first is cut by its outputs, the second by its inputs."""
    _, ax = plt.subplots(figsize=(8, 2.0))
    (one, two), shown = OTHERS[:2], GREY
    for x, y, width, height, color in (
        *((0, 0, 0.4, 2, shown), (0.9, 1, 1.6, 1, one), (0.9, 0, 1.6, 1, two)),
        *((3, 1, 0.4, 1, one), (3, 0, 0.4, 1, two), (3.9, 0, 0.8, 2, one), (4.7, 0, 0.8, 2, two)),
        *((6, 0, 0.4, 2, one), (6.9, 0, 0.4, 2, two), (7.8, 0, 0.4, 2, shown)),
    ):
        ax.bar(x, height, width, y, align="edge", color=color, edgecolor="white")
    texts = {"x": 0.2, "w1: rows": 1.7, "y1": 3.2, "w2: columns": 4.7, "two terms": 6.65, "y2": 8}
    for text, x in texts.items():
        ax.text(x, 2.1, text, ha="center")
    for x, sign in ((0.65, "·"), (2.75, "="), (3.65, "·"), (5.75, "="), (6.65, "+"), (7.55, "=")):
        ax.text(x, 1, sign, ha="center", va="center", fontsize=14)
    ax.axis("off")
    return ax


def tasks(ax: Axes, spans: Spans, framed: Collection, now: float) -> None:
    """Draw the tasks begun until now: a row for each rank, a number for each micro-batch."""
    ranks = range(1 + max(rank for rank, *_ in spans))
    for (rank, kind, i), (begin, end) in spans.items():
        if begin > now:
            continue
        edge = INK if (rank, kind, i) in framed else "white"
        look = {"color": KINDS[kind][1], "edgecolor": edge, "linewidth": 1.3}
        ax.barh(rank, end - begin, 0.8, begin, zorder=2 + (edge == INK), **look)
        at = {"transform": ax.transData, "ha": "center", "va": "center", "fontsize": 7}
        ax.figure.text((begin + end) / 2, rank, i, **at)  # no label of ax
    ax.set_yticks(ranks, [f"rank {rank}" for rank in ranks])
    as_rows(ax, ranks)


@figure
def plans(group: Mapping[str, Spans]) -> np.ndarray:
    """Draw the tasks of each plan; framed is a chain of tasks that no order can shorten."""
    _, axes = plt.subplots(len(group), 1, figsize=(8, 0.6 + 1.3 * len(group)), sharex=True)
    for ax, (name, spans) in zip(axes, group.items(), strict=True):
        last = max(rank for rank, *_ in spans)
        m, end = max(i for *_, i in spans), max(end for _, end in spans.values())
        full = end == max(end for (rank, *_), (_, end) in spans.items() if rank == last)
        chain = {key for key in spans if key[0] == last or key[1:] == ("F", 0)}
        if not full:  # the last micro-batch still goes down; its W is the last task of all
            chain |= {(rank, "B", m) for rank in range(last)}
            chain ^= {(0, "W", m), (last, "W", m)}
        tasks(ax, spans, chain, end)
        ax.set_title(f"{name}: {end:g} units", fontsize=10, loc="left")
    shown = {kind for spans in group.values() for _, kind, _ in spans}
    keys = [Patch(color=color, label=label) for k, (label, color) in KINDS.items() if k in shown]
    look = {"frameon": False, "fontsize": 8, "borderaxespad": 0}
    axes[0].legend(handles=keys, ncols=3, loc="lower right", bbox_to_anchor=(1, 1.02), **look)
    axes[-1].set_xlabel("units of time: a forward pass of a stage takes one")
    return axes


def steps(group: Mapping[str, Spans]) -> Stepper:
    """Step through plans: what begins is framed, with its message; what ranks hold is counted."""
    frames, captions = [], []
    for now in sorted({begin for spans in group.values() for begin, _ in spans.values()}):
        counts = []
        with style():
            page = Figure((4.4, 1.3 * len(group) + 0.2))
            panels = page.subplots(len(group), 1, sharex=True)
            for ax, (name, spans) in zip(panels, group.items(), strict=True):
                starts = {key for key, (begin, _) in spans.items() if begin == now}
                tasks(ax, spans, starts, now)
                for rank, kind, i in sorted(starts):
                    other = rank - 1 if kind == "F" else rank + 1
                    if (other, kind, i) in spans:
                        sent = spans[other, kind, i][1], other
                        ax.annotate("", (now, rank), sent, arrowprops={"arrowstyle": "->"})
                kept = [0] * (1 + max(rank for rank, *_ in spans))
                for (rank, kind, _), (begin, end) in spans.items():
                    kept[rank] += (kind == "F" and begin <= now) - (kind == "B" and end <= now)
                ax.set(title=name, xlim=(0, max(end for _, end in spans.values())))
                counts.append(f"{name}: ranks hold {', '.join(map(str, kept))}")
        frames.append(page)
        captions.append(f"Time {now:g}. {'; '.join(counts)} micro-batches.")
    title = "Three stages, three micro-batches; blue: forward, brown: backward"
    return stepper(frames, title=title, captions=captions)


@figure
def over_step(names: Sequence[str], curves: Mapping[str, Sequence[float]], unit: str) -> Axes:
    """Draw what is held after each layer, forward and backward; the last line is dashed."""
    _, ax = plt.subplots(figsize=(7, 3.2))
    ends = []
    for color, (name, values) in zip(colors(list(curves)), curves.items(), strict=True):
        look = {"color": GREY, "ls": "--"} if name == list(curves)[-1] else {"color": color}
        ax.step(range(len(values)), values, where="mid", linewidth=1.6, **look)
        ends.append((len(values) - 1, values[-1], name, look["color"]))
    ax.set(ylabel=unit, ylim=(0, None))
    ax.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, ends)
    return ax


# --- exercises ------------------------------------------------------------------------------------

FAULTS = "no Copied", "no Summed", "a bias on every rank", "the bubble", "unequal stages"


@kinds.labels(
    FAULTS,
    (
        "what is a rank's own term of a sum?",
        "whom do all others wait for?",
        "what can be wrong backward where all is right forward?",
        "where do ranks wait if all stages take as long?",
        "what is added once for each rank?",
    ),
    "A fault forward shows in the loss at once, one backward only in gradients below it.",
    "In equal stages ranks wait at the two ends alone.",
)
def faults():
    """Forward faults show in the loss, backward ones below; equal stages wait to fill and drain."""
    return ["no Summed", "unequal stages", "no Copied", "the bubble", "a bias on every rank"]


def as_cross_entropy(mine) -> str:
    """What is wrong with a softmax cross-entropy of outputs that are cut, in words."""
    rng = kinds.generator()
    for size, n, each in ((1, 3, 4), (2, 5, 3), (4, 64, 250)):
        z, labels = 1000 + rng.normal(size=(n, size * each)), rng.integers(0, size * each, n)
        dz = np.exp(z - 1000)
        dz /= dz.sum(1, keepdims=True)
        loss = -np.log(dz[np.arange(n), labels]).sum()
        dz[np.arange(n), labels] -= 1
        world, shares = Counting(size), np.split(z, size, axis=1)
        result = world.run(lambda c, z=shares, k=labels: mine(c, z[c.rank].copy(), k.copy()))
        for (value, got), right in zip(result, np.split(dz, size, axis=1), strict=True):
            if not np.isclose(value, loss):
                return f"{size} ranks: the loss is {loss:.4g}, got {value:.4g}"
            if np.shape(got) != right.shape or not np.allclose(got, right):
                return f"{size} ranks: the loss is right, the gradient is not"
        if (sent := world.sent.sum(1).max()) > 96 * n:
            return f"{n} rows, {size * each} outputs: a rank sends {sent:,} bytes, one an output"
    return ""


@kinds.tested(
    as_cross_entropy,
    "Of each row all ranks need three numbers: the largest, the sum of powers, the label's own.",
    "An allreduce by mpi.MAX and two by mpi.SUM; of the label's, all ranks but one add 0.",
)
def cross_entropy(comm, z, labels):
    """Three numbers a row travel, however many outputs there are."""
    from cnnlab.ranks import mpi

    def over_ranks(values, op):
        result = np.empty_like(values)
        comm.Allreduce(values, result, op)
        return result

    local = labels - comm.rank * z.shape[1]
    label = np.arange(z.shape[1]) == local[:, None]  # where a label lies here, if it does
    z = z - over_ranks(z.max(1), mpi.MAX)[:, None]
    total = over_ranks(np.exp(z).sum(1), mpi.SUM)
    own = over_ranks((label * z).sum(1), mpi.SUM)
    return float((np.log(total) - own).sum()), np.exp(z) / total[:, None] - label


def as_filled(mine) -> str:
    """What is wrong with a schedule of F, B and W: 3 m + p − 1 units and p held are wanted."""
    for size, m in ((1, 3), (2, 4), (3, 7), (4, 8), (4, 12)):
        group = [[Task(kind, rank, i) for kind, i in mine(rank, size, m)] for rank in range(size)]
        at, best = f"{size} ranks, {m} micro-batches", 3 * m + size - 1
        if fault := wrong(group, size, m):
            return f"{at}: {fault}"
        if len(group[0]) < 3 * m:
            return f"{at}: expected W for each B, got none"
        if (end := max(span.end for span in timed(group))) > best:
            return f"{at}: takes {end:g} units, expected {best}"
        if (most := max(max(held(tasks)) for tasks in group)) > size:
            return f"{at}: a rank holds {most} micro-batches, expected {size}"
    return ""


@kinds.tested(
    as_filled,
    "Begin with 1F1B. Nobody waits for W: when does a rank have nothing better to do?",
    "Let rank r put the W of a micro-batch off until it has gone back with r others.",
)
def challenge_schedule(rank, size, m):
    """ZB-H1: rank r puts W off by r micro-batches, which fills the gaps at its end."""
    first = min(size - rank, m)
    result = [("F", i) for i in range(first)]
    for i in range(m):
        result += [("B", i)] + [("W", i - rank)] * (i >= rank)
        result += [("F", first + i)] * (first + i < m)
    return result + [("W", i) for i in range(max(0, m - rank), m)]
