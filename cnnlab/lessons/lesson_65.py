"""The exercises of lesson 65, its charts, and the copies of a star, step by step."""

import itertools
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import COLORS, INK, LAYERS, figure, label_ends
from cnnlab.ranks.collectives import perform
from cnnlab.ranks.schedules import Step
from cnnlab.ranks.virtual import World
from cnnlab.ranks.virtual.network import Interconnect

FACE = ((0.0, 0.0), (1.6, 0.0), (1.6, 1.6), (0.0, 1.6))
SPOTS = [*FACE, *((x + 2.9, y + 0.45) for x, y in FACE)]  # of the GPUs, in inches
CPUS = (-0.8, 0.8), (5.3, 1.25)
SWITCHES = (0.8, -0.5), (0.8, 2.1), (3.7, -0.05), (3.7, 2.55)  # of PCIe, for two GPUs each
WAYS = {"double": LAYERS[0], "single": LAYERS[1], "PCIe, CPU": LAYERS[4]}
PALETTE = "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#7b5ea7", "#882255", "#cc79a7", "#d55e00"


def way(links: Mapping[tuple[int, int], int], a: int, b: int) -> tuple[str, list]:
    """The kind of way between two GPUs, and its points: over PCIe and CPUs without a link."""
    if n := links.get((min(a, b), max(a, b))):
        return "double" if n == 2 else "single", [SPOTS[a], SPOTS[b]]
    ends = []
    for gpu in (a, b):
        switch, (x, y) = SWITCHES[gpu // 2], CPUS[gpu // 4]
        inner, outer = (x + 0.2, x - 0.2) if gpu < 4 else (x - 0.2, x + 0.2)
        ends.append([SPOTS[gpu], switch, (inner, switch[1]), (inner, y), (outer, y), (outer, -0.9)])
    return "PCIe, CPU", ends[0] + ends[1][::-1]


def lines(ax: Axes, links: Mapping[tuple[int, int], int]) -> None:
    """The GPUs and CPUs, and a line for each link."""
    ax.set(xlim=(-1.2, 5.7), ylim=(-1.0, 2.8), aspect="equal")
    ax.axis("off")
    for a, b in itertools.combinations(range(8), 2):
        kind, points = way(links, a, b)
        x, y = np.transpose(points)
        across = np.array([y[0] - y[-1], x[-1] - x[0]]) / np.hypot(x[-1] - x[0], y[-1] - y[0])
        for dx, dy in (-0.04 * across, 0.04 * across) if kind == "double" else ((0, 0),):
            ax.plot(x + dx, y + dy, color=WAYS[kind], lw=1.5, zorder=len(points) < 3)
    names = [*range(8), "CPU 0", "CPU 1", *4 * ["switch"]]
    for k, (name, spot) in enumerate(zip(names, (*SPOTS, *CPUS, *SWITCHES), strict=True)):
        box = {"boxstyle": "circle" if k < 8 else "round", "fc": "white"}
        box["ec"] = INK if k < 8 else WAYS["PCIe, CPU"]
        ax.text(*spot, name, ha="center", va="center", bbox=box, fontsize=8)


@figure
def topology(links: Mapping[tuple[int, int], int], network: Interconnect) -> Sequence[Axes]:
    """Draw GPUs with their links, and for each pair the bandwidth between them in GB/s."""
    _, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.5), width_ratios=[1.8, 1])
    lines(left, links)
    for a, b in itertools.permutations(range(8), 2):
        speed = min(link.bandwidth for _, link in network.route(a, b)) / 1e9
        kind, _ = way(links, a, b)
        right.add_patch(plt.Rectangle((b - 0.5, a - 0.5), 0.94, 0.94, color=WAYS[kind]))
        ink = INK if kind == "single" else "white"
        right.text(b, a, f"{speed:.0f}", ha="center", va="center", color=ink, fontsize=9)
    keys = [Patch(color=color, label=name) for name, color in WAYS.items()]
    left.legend(handles=keys, ncols=3, loc="lower center", bbox_to_anchor=(0.5, -0.14), fontsize=9)
    right.set(xlabel="to GPU", ylabel="GB/s from GPU", xticks=range(8), yticks=range(8))
    right.set(xlim=(-0.6, 7.6), ylim=(7.6, -0.6), aspect="equal")
    right.grid(visible=False)
    return left, right


def copies(links: Mapping[tuple[int, int], int], world: World) -> Stepper:
    """Step through what GPU 0 gets, a frame for each copy that arrives; others are to come."""
    frames, captions = [], []
    messages = sorted((m for m in world.record.messages if m.to == 0), key=lambda m: m.end)
    for k, now in enumerate(messages):
        ax = frame((4.2, 2.3))
        lines(ax, links)
        for message in reversed(messages[k:]):
            kind, points = way(links, message.source, 0)
            look = {"color": COLORS["device"] if message is now else INK, "lw": 2.5}
            ax.plot(*np.transpose(points), **look, zorder=1)
            arrow = look | {"arrowstyle": "-|>", "shrinkB": 8}
            ax.annotate("", points[-1], points[-2], arrowprops=arrow, zorder=1)
        text = f"{1e6 * now.end:,.1f} µs: what GPU {now.source} sends is there ({kind})."
        captions.append(f"{text} Still to come: {len(messages) - k - 1}.")
        frames.append(ax.figure)
    return stepper(frames, title="A million float32 from each GPU to GPU 0", captions=captions)


@figure
def classes(table: Mapping[float, tuple[int, float, Sequence[float]]], ranked: float) -> Axes:
    """Draw µs of rings by the load of their busiest link: predicted, played, and how many."""
    _, ax = plt.subplots(figsize=(7.2, 3.2))
    models = [model for _, model, _ in table.values()]
    ax.bar(range(len(table)), models, color=LAYERS[2], width=0.7, label="predicted")
    points = [(k, t) for k, (_, _, played) in enumerate(table.values()) for t in played]
    ax.plot(*np.transpose(points), "o", ms=4, color=COLORS["vector"], label="played")
    ax.axhline(ranked, color=COLORS["device"], ls="--", lw=1, label="in the order of ranks")
    counts = [f"{busiest:g}\n{count:,} of them" for busiest, (count, _, _) in table.items()]
    ax.set_xticks(range(len(table)), counts)
    ax.set(xlabel="load of the busiest link: ps for each byte of a message", ylabel="µs")
    ax.legend(frameon=False, fontsize=9)
    return ax


@figure
def curves(x: Sequence, series: Mapping, xlabel: str, ylabel="µs", scale="log", **look) -> Axes:
    """Draw curves over x, which is logarithmic; `look` is of their lines."""
    _, ax = plt.subplots(figsize=(7.2, 3.6))
    ax.set(xscale="log", yscale=scale, xlabel=xlabel, ylabel=ylabel)
    ends = []
    for (name, values), color in zip(series.items(), PALETTE, strict=False):
        ax.plot(x, values, **{"marker": "o", "ms": 3, "color": color} | look)
        ends.append((x[-1], values[-1], name, color))
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, ends)
    return ax


@figure
def panels(x: Sequence[int], shares: Mapping[tuple[str, str], Sequence[float]]) -> Sequence[Axes]:
    """Draw per cent over images on each GPU, a panel for each network, a curve for each method."""
    names, methods = (list(dict.fromkeys(words)) for words in zip(*shares, strict=True))
    _, axes = plt.subplots(1, len(names), figsize=(8.6, 2.5), sharey=True)
    for (name, method), values in shares.items():
        ax, color = axes[names.index(name)], PALETTE[methods.index(method)]
        ax.plot([*map(str, x)], values, "o-", ms=3, label=method, color=color)
        ax.set(title=name, xlabel="images on each GPU", ylim=(0, 103))
        ax.tick_params(axis="x", labelsize=8)
    axes[0].set_ylabel("% computing")
    axes[0].legend(frameon=False, fontsize=9)
    return axes


@figure
def lanes(steps: Mapping[str, Sequence[Sequence[tuple[float, float]]]]) -> Sequence[Axes]:
    """Draw when each step computes and when it adds up, from (begin, end) in seconds."""
    _, axes = plt.subplots(len(steps), 1, figsize=(7.2, 0.4 + 1.1 * len(steps)))
    for ax, (name, pair) in zip(axes, steps.items(), strict=True):
        for y, spans in zip((1, 0), pair, strict=True):
            bars = [(1e3 * begin, 1e3 * (end - begin)) for begin, end in spans]
            ax.broken_barh(bars, (y - 0.4, 0.8), color=LAYERS[2 * y], ec="white", lw=0.5)
        ax.axvline(1e3 * pair[0][-1][1], color=INK, ls=":")
        ax.set(yticks=(0, 1), yticklabels=("adds up", "computes"), title=name)
    axes[-1].set_xlabel("ms")
    return axes


@kinds.labels(
    ["shared link", "last bucket", "rendezvous", "calls", "launches"],
    [
        "what does one more message of a round cost, however short it is?",
        "what takes as long for 32 images as for 256?",
        "of which length are these messages, in bytes, and what does a longer one wait for?",
        "which gradients are complete only when nothing is left to compute?",
        "how many of its messages go through a CPU, and in which direction?",
    ],
    "What differs between the two? Most have their numbers in a cell above.",
)
def diagnosis():
    """A message adds two calls; kernels hardly longer than a launch; over 64 KiB a copy waits for
    the server; the first layer's gradients come last; messages of one round queue for one link."""
    return ["calls", "launches", "rendezvous", "last bucket", "shared link"]


def _as_broadcast(schedule) -> str:
    rng = kinds.generator()
    for size, n, pieces in ((2, 5, 1), (4, 1000, 3), (8, 100_000, 16), (8, 3, 5)):
        order, x = rng.permutation(size).tolist(), rng.random(n, np.float32)
        programs = [list(schedule(rank, order, n, pieces)) for rank in range(size)]
        if {len(steps) for steps in programs} != {rounds := pieces + size - 2}:
            return f"{size} GPUs, {pieces} pieces: expected {rounds} rounds on each GPU"

        def program(comm, x=x, order=order, programs=programs):
            mine = x.copy() if comm.rank == order[0] else np.zeros_like(x)
            perform(comm, mine, programs[comm.rank])
            return mine

        for rank, result in enumerate(World(size, "dgx1").run(program)):
            if not np.array_equal(result, x):
                return f"order {order}, n = {n}, {pieces} pieces: GPU {rank} has something else"
    return ""


@kinds.tested(
    _as_broadcast,
    "Number the GPUs by their place in `order`. In which round does piece 0 reach the third?",
    "In round k the GPU at place i sends piece k − i on, and gets piece k − i + 1, if there are.",
)
def broadcast(rank, order, n, pieces):
    """With k pieces each of k + P − 2 rounds takes 3 µs and 80 / k µs for its bytes. Their sum is
    least at the square root of 80 (P − 2) / 3, so 13, with 174 µs. One piece takes 581, a hundred
    403; played, a hundred take less: short pieces are eager, so rounds overlap."""
    at, last = order.index(rank), len(order) - 1
    for k in range(pieces + last - 1):
        step = Step()
        if at < last and 0 <= k - at < pieces:
            a, b = n * (k - at) // pieces, n * (k - at + 1) // pieces
            step = step._replace(to=order[at + 1], a=a, b=b)
        if at > 0 and 0 <= k - at + 1 < pieces:
            c, d = n * (k - at + 1) // pieces, n * (k - at + 2) // pieces
            step = step._replace(source=order[at - 1], c=c, d=d)
        yield step


def _as_soonest(function) -> str:
    rng = kinds.generator()
    for n_layers in (1, 2, 3, 5, 8, 8, 8):
        seconds, sizes = rng.integers(1, 50, (2, n_layers)).tolist()
        latency = int(rng.integers(1, 60))
        best = np.inf
        for cuts in itertools.product((False, True), repeat=n_layers - 1):
            now = free = pending = 0
            for each, n, cut in zip(seconds, sizes, (*cuts, True), strict=True):
                now, pending = now + each, pending + n
                if cut:
                    free, pending = max(now, free) + latency + pending, 0
            best = min(best, free)
        got = function(list(seconds), list(sizes), lambda n, once=latency: once + n)
        if not np.isclose(got, best):
            return f"{seconds}, {sizes}, cost {latency} + n: expected {best}, got {got}"
    return ""


@kinds.tested(
    _as_soonest,
    "When are the first i layers added up at the soonest? Their last bucket has layers j to i − 1.",
    "It begins when layer i − 1 is ready and the first j are added up: try all j.",
)
def challenge_soonest(seconds, sizes, cost):
    """If earlier buckets are done sooner, later ones are never done later, so the best for i layers
    contains a best for fewer: dynamic programming, some n² / 2 buckets in place of 2ⁿ⁻¹ cuts."""
    done = [0]
    for i in range(1, len(sizes) + 1):
        ready = sum(seconds[:i])
        done.append(min(max(ready, done[j]) + cost(sum(sizes[j:i])) for j in range(i)))
    return done[-1]
