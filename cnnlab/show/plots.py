"""Figures in one style: each function takes data and returns the Axes it drew on.

Every function also takes `title` and `caption`, the small line below: by default the machine, for
what was measured on it. A strategy has one colour everywhere, of the palette of Okabe and Ito that
colour-blind readers tell apart; intervals are drawn, and bounds stand beside what they bound.
"""

import functools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm

from cnnlab.bench import machine
from cnnlab.bench.measure import Timing, digits, in_words, speedup
from cnnlab.runtime import thread_pool

NAMED = ("reference", "loops", "vector", "threads", "ranks", "device", "torch")
HUES = ("#7f7f7f", "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
COLORS = dict(zip(NAMED, HUES, strict=True))
OTHERS = ("#4c6a92", "#b8860b", "#2f8f8f", "#8c564b", "#7b5ea7", "#5f7f3f")
LAYERS = ("#23527c", "#7fb0d8", "#d5e3ef", "#f0dfbd", "#d49a4e", "#8f5a22")
INK, GREY, WRONG = "#222222", "#737373", "#d55e00"
STYLE = {
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
}
Named = Mapping[str, float]
Point = tuple[float, float]
Timings = Mapping[str, Timing]
Runs = Sequence[Timing] | Mapping[str, Sequence[Timing]]
ERRORS = {"elinewidth": 1.2, "capsize": 3}


def style() -> AbstractContextManager:
    """Return a context in which figures of your own look like these."""
    _choose_backend()
    return plt.rc_context(STYLE)


@functools.cache
def _choose_backend() -> None:
    """Choose it outside the context: a first choice inside would not stay interactive after it."""
    plt.switch_backend(plt.get_backend())


def colors(names: Sequence[str]) -> list[str]:
    """Return one colour per name: a strategy's own, the others in order."""
    others = [name for name in names if name not in COLORS]
    return [COLORS.get(n) or OTHERS[others.index(n) % len(OTHERS)] for n in names]


def figure(draw, default=""):
    """Draw in the style, then add title and caption."""

    @functools.wraps(draw)
    def wrapper(*args, title: str = "", caption: str | None = default, **kwargs):
        with style():
            axes = draw(*args, **kwargs)
            page, left = np.ravel(axes)[0].figure, {"x": 0.01, "ha": "left"}
            if title:
                page.suptitle(title, **left, fontsize=12, weight="bold")
            if caption != "":
                page.supxlabel(caption or machine.caption(), **left, fontsize=7, color=GREY)
        return axes

    return wrapper


_measured = functools.partial(figure, default=None)


@figure
def images(
    batch: np.ndarray, labels: Sequence = (), *, predicted: Sequence = (), columns: int = 10
) -> Axes:
    """Draw grey images (N, H, W) or (N, 1, H, W) under labels; wrong predictions in orange."""
    shown = [str(label) for label in labels] or [""] * len(batch)
    guesses = [str(guess) for guess in predicted] or shown
    texts = [a if a == b else f"{a} → {b}" for a, b in zip(shown, guesses, strict=True)]
    inks = [INK if a == b else WRONG for a, b in zip(shown, guesses, strict=True)]
    return _mosaic(batch, texts, inks, columns, cmap="gray_r", vmin=0, vmax=np.max(batch))


@figure
def filters(w: np.ndarray, *, columns: int = 6) -> Axes:
    """Draw filters (F, C, K, K) or (F, K, K): orange is negative, white zero, purple positive."""
    tiles, limit = np.reshape(w, (-1, *np.shape(w)[-2:])), float(np.abs(w).max()) or 1.0
    texts, inks = [f"filter {f}" for f in range(len(tiles))], [INK] * len(tiles)
    ax = _mosaic(tiles, texts, inks, columns, 1.1, cmap="PuOr", vmin=-limit, vmax=limit)
    ax.figure.colorbar(ax.images[0], label="weight", aspect=15).outline.set_visible(False)
    return ax


@_measured
def speedups(
    timings: Timings, base: str = "loops", *, per: str = "call", bounds: Named | None = None
) -> Axes:
    """Draw how many times faster than `base` each is, in timings of one `measure.compare`.

    Beside each bar stand its speedup and its seconds per `per` (such as "epoch"). `bounds` are
    speedups that cannot be beaten, by name. Above a range of 20 the axis is logarithmic, from 1.
    """
    bounds, names = bounds or {}, list(timings)
    if base not in names:
        raise ValueError(f"base: expected one of {names}, got {base!r}")
    ratios = [speedup(timings[base], timing) for timing in timings.values()]
    value, low, high = np.array([(r.value, r.low, r.high) for r in ratios]).T
    _, ax = plt.subplots(figsize=(7, 1.3 + 0.4 * len(names) + 0.2 * bool(bounds)))
    smallest, largest = min(1, *low), max(1, *high, *bounds.values())
    start = 1 if largest > 20 * smallest else 0
    ax.barh(names, value - start, 0.62, start, color=colors(names))
    ax.errorbar(value, names, xerr=[value - low, high - value], fmt="none", ecolor=INK, **ERRORS)
    ax.axvline(1, color=GREY, linewidth=1, zorder=0)
    ax.set_xlim(0, 1.35 * largest)
    if start:
        ax.plot(1, base, "o", color=colors([base])[0])  # a bar from 1 to 1 has no length
        ax.set(xscale="log", xlim=(smallest / 1.05, largest * (largest / smallest) ** 0.35))
        ax.xaxis.set_major_formatter("{x:g}")
    for y, timing in enumerate(timings.values()):
        text, right = f"{digits(value[y])}×  ({in_words(timing.median)})", max(high[y], 1)
        _note(ax, text, (right, y), (7, 0), va="center", backgroundcolor="white")
    for name, bound in bounds.items():
        ax.axvline(bound, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
        _note(ax, name, (bound, -0.5), (0, 3), ha="center", color=GREY)
    ax.set_xlabel(f"times faster than {base} ({in_words(timings[base].median)} per {per})")
    return _rows(ax, names)


@_measured
def scaling(workers: Sequence[int], timings: Runs, *models, unit: str = "threads") -> Axes:
    """Draw speedup over one worker, the ideal line, and the given `bench.scaling_laws`.

    `timings[i]` is the time with `workers[i]` workers; several strategies come as a dictionary.
    The ideal line ends its rise where this machine has no more cores.
    """
    if not isinstance(timings, Mapping):
        timings = {timings[0].name: timings}
    if 1 not in workers or any(len(workers) != len(series) for series in timings.values()):
        raise ValueError(f"workers: expected 1 and one number per timing, got {list(workers)}")
    _, ax = plt.subplots(figsize=(7, 4))
    most, last = max(workers), int(np.argmax(workers))
    cores = min(most, thread_pool.usable_cores())
    ax.plot([1, cores, most], [1, cores, cores], "--", color=GREY, linewidth=1.2)
    labels = [(most, cores, f"ideal on {cores} cores", GREY)]
    for color, (name, series) in zip(colors(list(timings)), timings.items(), strict=True):
        base = series[list(workers).index(1)].median
        value, low, high = (base / np.array([(t.median, t.high, t.low) for t in series])).T
        ax.errorbar(workers, value, [value - low, high - value], fmt="o-", color=color, **ERRORS)
        text = f"{name} {digits(value[last])}× ({in_words(series[last].median)})"
        labels.append((most, value[last], text, color))
    n = np.linspace(1, most, 100)
    for line, model in zip((":", "-."), models, strict=False):
        ax.plot(n, [model.speedup(k) for k in n], line, color=INK, linewidth=1.4)
        labels.append((most, model.speedup(most), str(model), INK))
    ax.set(xlabel=f"number of {unit}", ylabel="times faster than one", xticks=workers)
    ax.set_ylim(0, 1.05 * max(y for _, y, _, _ in labels))
    _labels(ax, labels)
    return ax


@_measured
def roofline(
    points: Mapping[str, Point], peak: float, bandwidth: float, *, ceilings: Named | None = None
) -> Axes:
    """Draw points (FLOP/byte, FLOP/s) under the roof: `peak` FLOP/s and `bandwidth` bytes/s.

    `ceilings` are lower peaks by name, such as that of narrower vectors. After Williams, Waterman
    and Patterson, "Roofline", CACM 2009.
    """
    _, ax = plt.subplots(figsize=(8, 4.4))
    x, y = np.array(list(points.values()), float).reshape(-1, 2).T
    ridge = peak / bandwidth
    left, right = min(ridge / 24, *x / 4), max(ridge * 16, *x * 4)
    heights = min(left * bandwidth, *y / 2), 2.5 * peak
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=heights)
    for name, height in [*(ceilings or {}).items(), ("peak", peak)]:
        look = {"color": INK} if name == "peak" else {"color": GREY, "ls": "--", "lw": 1}
        ax.plot([height / bandwidth, right], [height, height], **look)
        text = f"{name}: {digits(height / 1e9)} GFLOP/s"
        _note(ax, text, (right, height), (-2, 3), ha="right", color=look["color"])
    ax.plot([left, ridge], [left * bandwidth, peak], color=INK)
    spot, labels = (ridge / 1.7, peak / 1.7), []
    _note(ax, f"memory: {digits(bandwidth / 1e9)} GB/s", spot, (-7, 0), ha="right")
    for name, at, rate, color in zip(points, x, y, colors(list(points)), strict=True):
        ax.plot(at, rate, "o", color=color, markersize=8)
        share = rate / min(peak, at * bandwidth)
        labels.append((at, rate, f"{name} ({share:.0%} of its roof)", color))
    _labels(ax, labels)
    ax.set(xlabel="arithmetic intensity (FLOP/byte)", ylabel="GFLOP/s on one core")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter(lambda rate, _: f"{rate / 1e9:g}")
    return ax


@figure
def learning_curves(histories: Mapping[str, Sequence[Mapping]]) -> np.ndarray:
    """Draw loss and accuracy over the `images` or the `epoch` of a history's rows; two Axes."""
    _, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    for ax, what in zip(axes, ("loss", "accuracy"), strict=True):
        labels = []
        for k, (name, color) in enumerate(zip(histories, colors(list(histories)), strict=True)):
            width = 0.5 + 1.5 * (len(histories) - k)  # equal curves stay visible in layers
            rows = [row for row in histories[name] if row.get(what) is not None]
            time = "images" if rows and "images" in rows[0] else "epoch"
            x, y = [row[time] for row in rows], [row[what] for row in rows]
            ax.plot(x, y, "o-", color=color, linewidth=width, markersize=width + 1)
            ax.set_xlabel("images seen" if time == "images" else "epoch")
            labels += [(x[-1], y[-1], name, color)] if rows else []
        ax.locator_params(axis="x", nbins=4, integer=True)
        ax.set(ylabel=what, ylim=(0 if what == "loss" else None, None))
        _labels(ax, labels)
    axes[1].yaxis.set_major_formatter("{x:.1%}")
    return axes


@figure
def confusion(matrix: np.ndarray, class_names: Sequence[str] | None = None) -> Axes:
    """Draw how many images of each true class (row) were taken for each class (column)."""
    from sklearn.metrics import ConfusionMatrixDisplay  # here, because it takes a second

    _, ax = plt.subplots(figsize=(5.2, 5))
    display = ConfusionMatrixDisplay(np.asarray(matrix), display_labels=class_names)
    root = {"norm": PowerNorm(0.5, vmin=0)}  # shows rare mistakes
    display.plot(ax=ax, cmap="Blues", colorbar=False, im_kw=root, values_format="d")
    ax.set(xlabel="predicted", ylabel="true")
    ax.grid(visible=False)
    return ax


@_measured
def layer_times(times: Mapping[str, Named], *, per: str = "call") -> Axes:
    """Draw where the time goes: for each strategy, each layer's share of its seconds per `per`."""
    names, layers = list(times), dict.fromkeys(layer for parts in times.values() for layer in parts)
    _, ax = plt.subplots(figsize=(7, 1.5 + 0.45 * len(names)))
    total, left = np.array([sum(parts.values()) for parts in times.values()]), 0
    for k, layer in enumerate(layers):
        seconds = np.array([parts.get(layer, 0.0) for parts in times.values()])
        share, color = seconds / total, LAYERS[k % len(LAYERS)]
        bars = ax.barh(names, share, 0.66, left, color=color, label=layer, edgecolor="white")
        texts = [in_words(t) if wide else "" for t, wide in zip(seconds, share > 0.12, strict=True)]
        ink = "white" if color in (LAYERS[0], LAYERS[-1]) else INK
        ax.bar_label(bars, texts, label_type="center", color=ink, fontsize=9)
        left = left + share
    ax.bar_label(bars, [f"{in_words(seconds)} in all" for seconds in total], padding=6)
    ax.legend(ncols=6, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderaxespad=0)
    ax.set(xlim=(0, 1.25), xticks=np.arange(0, 1.1, 0.25), xlabel=f"share of the time per {per}")
    ax.xaxis.set_major_formatter("{x:.0%}")
    return _rows(ax, names)


def _mosaic(tiles, texts, inks, columns, tile=0.75, **look) -> Axes:
    """Draw tiles `tile` inches wide on one Axes, each under its text."""
    height, width = np.shape(tiles)[-2:]
    columns = min(columns, len(tiles))
    rows = -(-len(tiles) // columns)
    across, down = 1.1 * width, height + 0.3 * width / tile
    _, ax = plt.subplots(figsize=(tile * columns * 1.1, tile * rows * down / width + 0.05))
    for k, (pixels, text, ink) in enumerate(zip(tiles, texts, inks, strict=True)):
        x, y = k % columns * across, k // columns * down
        ax.imshow(np.squeeze(pixels), extent=(x, x + width, y + height, y), **look)
        _note(ax, text, (x + width / 2, y), (0, 2), ha="center", fontsize=9, color=ink)
    ax.set(xlim=(0, columns * across), ylim=(rows * down - down + height, height - down))
    ax.axis("off")
    return ax


def _labels(ax: Axes, labels: Sequence[tuple[float, float, str, str]]) -> None:
    """Write (x, y, text, colour) right of the axes, a line leading there; limits must be final."""
    to_axes = ax.transData + ax.transAxes.inverted()
    height = np.array([to_axes.transform(label[:2])[1] for label in labels])
    order, gap = height.argsort(), 0.23 / ax.figure.get_figheight()
    spots = height[order]
    for _ in range(200):  # neighbours push each other apart until all have room
        push = np.maximum(gap - np.diff(spots), 0) / 2
        spots += np.append(0, push) - np.append(push, 0)
    for k, spot in zip(order, spots, strict=True):
        *point, text, color = labels[k]
        look = {"color": color, "va": "center", "annotation_clip": False}
        line = {"arrowstyle": "-", "color": color, "lw": 0.7, "alpha": 0.6, "shrinkB": 4}
        ax.annotate(text, point, (1.03, spot), "data", "axes fraction", arrowprops=line, **look)


def _rows(ax: Axes, names: Sequence[str]) -> Axes:
    """Horizontal bars from top to bottom, with nothing but their names on the axis."""
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    return ax


def _note(ax: Axes, text: str, at: Point, offset: Point, **look) -> None:
    ax.annotate(text, at, offset, textcoords="offset points", **look)
