"""Lesson 34: numbers for a block and NumPy's answer, graphs and plans drawn, the exercises."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import inputs, kinds
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import COLORS, GREY, INK, as_rows, figure


def numbers(block: Mapping, side: int, n: int) -> dict[str, np.ndarray]:
    """Maps x (n,C,side,side), at least 0, and weights and biases of each convolution, float32."""
    rng = np.random.default_rng(0)
    arrays = {"x": rng.random((n, block["one"].channels, side, side), np.float32)}
    for name, op in block.items():
        if not op.pools:
            shape = op.filters, op.channels, op.K, op.K
            bound = (3 / np.prod(shape[1:])) ** 0.5
            arrays[f"{name}_w"] = rng.uniform(-bound, bound, shape).astype(np.float32)
            arrays[f"{name}_b"] = rng.uniform(-1, 1, op.filters).astype(np.float32)
    return arrays


def exact(block: Mapping, side: int, n: int, ends: bool = False) -> np.ndarray:
    """The block's output by NumPy, float64; with `ends` that of the first and the last image."""
    arrays, parts = numbers(block, side, n), {}
    values = {"x": (arrays["x"][[0, -1]] if ends else arrays["x"]).astype(float)}
    for name, op in block.items():
        padded = np.pad(values[op.source], ((0, 0), (0, 0), (op.K // 2,) * 2, (op.K // 2,) * 2))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (op.K, op.K), axis=(2, 3))
        if op.pools:
            values[name] = windows.max(axis=(4, 5))
        else:
            w, b = arrays[f"{name}_w"].astype(float), arrays[f"{name}_b"][:, None, None]
            z = np.einsum("ncpqkl,fckl->nfpq", windows, w, optimize=True) + b
            values[name] = np.maximum(z, 0)
        if op.first is not None:
            parts[op.first] = values[name]
    return np.concatenate([parts[first] for first in sorted(parts)], axis=1)


# --- pictures -------------------------------------------------------------------------------------

LOOK = {"arrowstyle": "->", "color": INK, "lw": 0.7}
HUES = COLORS["vector"], COLORS["device"], "#009e73", "#cc79a7"  # of the branches, or streams


@figure
def draw_graph(block: Mapping, graph: Mapping | None = None, ends: Mapping | None = None) -> Axes:
    """Draw operations and what they need: with shapes, or with a graph's work; thick: the path."""
    path = [max(ends, key=ends.get)] if ends else []
    path += [block[name].source for name in path]
    _, ax = plt.subplots(figsize=(8, 2.6))
    columns = [name for name, op in block.items() if op.source not in block]
    for name, op in block.items():
        x, y = columns.index(op.source if op.source in block else name), 1 + (op.source in block)
        shape = f"{op.K} × {op.K}, " + ("largest" if op.pools else f"{op.channels} to {op.filters}")
        text = f"{name.replace('_', ' ')}\n" + (f"{graph[name][0]:,}" if graph else shape)
        box = {"boxstyle": "round", "fc": "white", "ec": INK, "lw": 2.5 if name in path else 0.7}
        ax.text(x, y, text, ha="center", va="center", fontsize=8, bbox=box)
        for top, bottom in ((y - 1, y), (y, 3))[: 1 + (op.first is not None)]:
            ax.annotate("", (x, bottom - 0.24), (x, top + 0.24), arrowprops=LOOK)
    for y, text in ((0, "maps"), (3, "concatenate")):
        ax.barh(y, len(columns) - 0.2, 0.4, -0.4, color="white", ec=INK, lw=0.7)
        ax.text(len(columns) / 2 - 0.5, y, text, ha="center", va="center", fontsize=8)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(3.3, -0.3))
    ax.axis("off")
    return ax


@figure
def draw_plans(plans: Mapping[str, Mapping[str, tuple]], branches: Sequence) -> Sequence[Axes]:
    """Draw plans one below the other: a row for each stream, a bar for each operation."""
    hues = {name: hue for names, hue in zip(branches, HUES, strict=True) for name in names}
    heights = [1 + max(stream for stream, *_ in plan.values()) for plan in plans.values()]
    _, axes = plt.subplots(len(plans), figsize=(8, 4), sharex=True, height_ratios=heights)
    for ax, (title, plan), height in zip(axes, plans.items(), heights, strict=True):
        for name, (stream, start, end) in plan.items():
            ax.barh(stream, (end - start) / 1e3, 0.8, start / 1e3, color=hues[name], ec="white")
            if end - start > 20_000:
                ax.text((start + end) / 2e3, stream, name, ha="center", va="center", fontsize=7)
        ax.set_yticks(range(height), range(height))
        ax.set_ylabel(title, rotation=0, ha="right", va="center")
        as_rows(ax, list(range(height)))
    for names in branches:
        axes[-1].barh(0, 0, color=hues[names[0]], label=" + ".join(names).replace("_", " "))
    axes[-1].legend(loc="right")
    axes[-1].set_xlabel("thousand multiply-adds")
    return axes


@figure
def draw_maps(maps: Mapping[str, Mapping], sides: Sequence, images: Sequence) -> Sequence[Axes]:
    """Draw gains over sides and batches, of (gain, µs) or (gain, µs, whether it is certain)."""
    _, axes = plt.subplots(1, len(maps), figsize=(3.1 * len(maps) + 0.6, 3), squeeze=False)
    for ax, (name, cells) in zip(axes[0], maps.items(), strict=True):
        grid = np.array([[cells[side, n][0] for n in images] for side in sides])
        ax.imshow(np.log(grid), cmap="PuOr_r", vmin=-np.log(3), vmax=np.log(3), aspect="auto")
        for (row, side), (column, n) in product(enumerate(sides), enumerate(images)):
            value, us, *sure = cells[side, n]
            look = {"color": "white" if abs(np.log(value)) > 0.75 else INK, "fontsize": 8}
            text = f"{'≈' if sure == [False] else ''}{value:.2f}\n{us:,.{int(us < 100)}f}"
            ax.text(column, row, text, ha="center", va="center", **look)
        ax.set_xticks(range(len(images)), images)
        ax.set_yticks(range(len(sides)), sides)
        ax.set(title=name, xlabel="images", ylabel="side" * (ax is axes[0, 0]))
        ax.grid(visible=False)
    return axes[0]


@figure
def draw_fill(measured: Mapping[int, Sequence], modelled: Mapping, full: float) -> Sequence[Axes]:
    """Draw µs of one operation, four in sequence and four side by side by blocks, and the gain."""
    _, axes = plt.subplots(2, 1, figsize=(7.2, 4.4), sharex=True, height_ratios=[3, 2])
    for times, look in ((measured, "o-"), (modelled, ":")):
        for k, color in enumerate((GREY, *HUES[:2])):
            axes[0].plot([*times], [t[k] for t in times.values()], look, color=color)
        axes[1].plot([*times], [t[1] / t[2] for t in times.values()], look, color=HUES[1])
    for ax, (count, text) in product(axes, ((full / 4, " corner: four"), (full, " corner: one"))):
        ax.axvline(count, color=INK, ls="--", lw=0.8)
        ax.text(count, 0.9, text, transform=ax.get_xaxis_transform(), fontsize=8)
    axes[0].set(xscale="log", yscale="log", ylabel="µs")
    axes[1].set(ylim=(0, 4.4), xlabel="blocks of one convolution", ylabel="gain, times")
    axes[0].legend(["one alone", "four in sequence", "four side by side"], frameon=False)
    return axes


def timelines(frames: Mapping[str, Sequence[tuple]]) -> Stepper:
    """Step through launches of a block: (row, stream, start, end, name); row 0 is the host's."""
    stop, pages = 1.02 * max(bar[3] for bars in frames.values() for bar in bars), []
    for bars in frames.values():
        ax = frame((6.4, 2.4))
        for row, stream, start, end, name in bars:
            look = {"color": GREY if stream is None else HUES[stream], "ec": "white", "lw": 0.5}
            bar = ax.barh(row, end - start, 0.7, start, **look)
            if end - start > 0.045 * stop:
                ax.bar_label(bar, [name.replace("_", "\n")], label_type="center", fontsize=5)
        ax.set(xlim=(0, stop), ylim=(4.6, -0.6), xlabel="µs")
        ax.set_yticks(range(5), ["host", *(f"stream {k}" for k in range(4))])
        pages.append(ax.figure)
    return stepper(pages, title="Modelled: two calls of a block; grey: events", captions=[*frames])


# --- exercises ------------------------------------------------------------------------------------


@kinds.labels(
    ["critical path", "launches", "a full device", "memory"],
    ["who waits?", "what is in a row?", "is there room?", "what needs room at once?", "in a row?"],
    "Which of the four would explain it, and would the others change anything there?",
    "A graph takes launches away, more images fill the device, and neither shortens a path.",
)
def obstacles():
    """Each is explained by one bound: change what that depends on, and it shows."""
    return ["launches", "critical path", "a full device", "memory", "critical path"]


def _right_waits(mine: Callable) -> str:
    rng = np.random.default_rng(inputs.first_seed())
    for n, k in ((2, 2), (5, 2), (6, 3), (9, 3), (12, 4)):
        names, streams = [f"{i}" for i in range(n)], rng.integers(0, k, n)
        needs = {a: [b for b in names[:i] if rng.random() < 0.5] for i, a in enumerate(names)}
        queues = [[a for i, a in enumerate(names) if streams[i] == t] for t in range(k)]
        expected, given = waits.model()(queues, needs), [list(queue) for queue in queues]
        got = {tuple(pair) for pair in mine(given, {a: list(b) for a, b in needs.items()})}
        for name, other in [*sorted(got - expected), *sorted(expected - got)]:
            word = "need not" if (name, other) in got else "does not"
            return f"{name} {word} wait for {other}; queues = {queues}, needs = {needs}"
    return ""


@kinds.tested(
    _right_waits,
    "For each operation and each other stream: which is the last there that it needs?",
    "A stream is in order: it has waited for whatever one of its operations has waited for.",
)
def waits(queues, needs):
    """A stream waits for the last that it needs of another, once it needs a later one."""
    pairs = set()
    for queue, other in product(queues, queues):
        waited = -1
        for name in queue:
            last = max((i for i, each in enumerate(other) if each in needs[name]), default=-1)
            if last > waited and other is not queue:
                pairs.add((name, other[last]))
                waited = last
    return pairs


def _right_schedule(mine: Callable) -> str:
    rng = np.random.default_rng(inputs.first_seed())
    for n, k in ((1, 1), (4, 2), *[(6, 2)] * 20, *[(6, 3)] * 10):
        needs = [[f"{i}" for i in range(j) if rng.random() < 0.3] for j in range(n)]
        graph = {f"{j}": (int(rng.integers(1, 10)), needs[j]) for j in range(n)}
        plan = mine({name: (work, list(each)) for name, (work, each) in graph.items()}, k)
        if plan.keys() != graph.keys():
            return f"expected a stream and a start for each of {[*graph]}, got {[*plan]}"
        spans = {name: (s, t, t + graph[name][0]) for name, (s, t) in plan.items()}
        for name, (stream, start, end) in spans.items():
            if stream not in range(k) or start < 0:
                return f"expected streams below {k} and starts from 0 on, got {plan[name]}"
            for other, (where, begin, stop) in spans.items():
                if other in graph[name][1] and stop > start:
                    return f"{name} begins at {start}, before {other}, which it needs, is done"
                if other != name and where == stream and begin < end and start < stop:
                    return f"{name} and {other} overlap on stream {stream}; graph = {graph}"
        model = challenge_schedule.model()(graph, k)
        best, took = (max(p[n][1] + graph[n][0] for n in graph) for p in (model, plan))
        if took > best:
            return f"takes {took}, where {best} would do, on {k} streams; graph = {graph}"
    return ""


@kinds.tested(
    _right_schedule,
    "Try each operation that is ready as the next one, on the stream that is free first.",
    "Give up a beginning as soon as an end of it is no better than the best whole schedule.",
)
def challenge_schedule(graph, k):
    """Branch and bound from the list schedule: what cannot be better, or was seen, is given up."""
    left, seen, best = {}, set(), [float("inf"), {}]
    for name in reversed(graph):
        left[name] = graph[name][0] + max((left[n] for n in left if name in graph[n][1]), default=0)

    def go_on(plan, ends, free):
        rest, first = [name for name in graph if name not in ends], min(free)
        awaited = {other for name in rest for other in graph[name][1]} & ends.keys()
        state = *rest, *sorted(free), *(max(first, ends[name]) for name in sorted(awaited))
        even = (sum(free) + sum(graph[name][0] for name in rest)) / k
        bound = max([even, *free, *(first + left[name] for name in rest)])
        if bound >= best[0] or state in seen:
            return
        seen.add(state)
        if not rest:
            best[:] = bound, plan
        ready = [name for name in rest if all(other in ends for other in graph[name][1])]
        starts = {name: max([first, *(ends[other] for other in graph[name][1])]) for name in ready}
        for name in sorted(starts, key=lambda name: (starts[name], -left[name])):
            stream, end = free.index(first), starts[name] + graph[name][0]
            then = [*free[:stream], end, *free[stream + 1 :]]
            go_on(plan | {name: (stream, starts[name])}, ends | {name: end}, then)

    go_on({}, {}, [0] * k)
    return best[1]
