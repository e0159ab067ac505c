"""Plots of measurements, and of filters. Each function returns the Axes it drew on.

Every function also takes `title` and `caption`, the small line below: the machine by default, for
what was measured on it. Intervals are drawn, and bounds stand beside what they bound.
"""

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.kernels import BASE
from cnnlab.measure import bench
from cnnlab.measure.timing import Timing, digits, in_words, speedup, time_unit
from cnnlab.plots.style import (
    ERRORS,
    GREY,
    INK,
    Point,
    as_rows,
    colors,
    figure,
    label_ends,
    measured,
    note,
    part_colors,
)
from cnnlab.runtime.arguments import one_of

Named = Mapping[str, float]


@figure
def filters(w: np.ndarray, *, columns: int = 6) -> Axes:
    """Draw filters (F,C,K,K) or (F,K,K): orange is negative, white zero, purple positive."""
    tiles, limit = np.reshape(w, (-1, *np.shape(w)[-2:])), float(np.abs(w).max()) or 1.0
    (n, height, width), tile = tiles.shape, 1.1  # inches
    columns = min(columns, n)
    rows = -(-n // columns)
    across, down = 1.1 * width, height + 0.3 * width / tile  # from each to the next
    _, ax = plt.subplots(figsize=(tile * columns * 1.1, tile * rows * down / width + 0.05))
    for f, pixels in enumerate(tiles):
        x, y = f % columns * across, f // columns * down
        extent = (x, x + width, y + height, y)
        ax.imshow(pixels, extent=extent, cmap="PuOr", vmin=-limit, vmax=limit)
        note(ax, f"filter {f}", (x + width / 2, y), (0, 2), ha="center", fontsize=9, color=INK)
    ax.set(xlim=(0, columns * across), ylim=(rows * down - down + height, height - down))
    ax.axis("off")
    ax.figure.colorbar(ax.images[0], label="weight", aspect=15).outline.set_visible(False)
    return ax


@measured
def speedups(
    timings: Mapping[str, Timing],
    base: str = "loops",
    *,
    per: str = "call",
    bounds: Named | None = None,
    log: bool = True,
) -> Axes:
    """Draw speedups over `base`, from timings of one `measure.compare`.

    Beside each bar stand its speedup and its time per `per` (such as "epoch"). `bounds` are upper
    bounds of the speedup, by name. What stands before a comma in a name decides its colour. With
    `log`, the axis is logarithmic above a range of 20, and bars start at 1.
    """
    bounds, names = bounds or {}, list(timings)
    one_of("base", base, names)
    ratios = [speedup(timings[base], timing) for timing in timings.values()]
    value, low, high = np.array([(r.value, r.low, r.high) for r in ratios]).T
    _, ax = plt.subplots(figsize=(7, 1.3 + 0.4 * len(names) + 0.2 * bool(bounds)))
    smallest, largest = min(1, *low), max(1, *high, *bounds.values())
    start = 1 if log and largest > 20 * smallest else 0
    shades = colors([name.partition(",")[0] for name in names])
    ax.barh(names, value - start, 0.62, start, color=shades)
    ax.errorbar(value, names, xerr=[value - low, high - value], fmt="none", ecolor=INK, **ERRORS)
    ax.axvline(1, color=GREY, linewidth=1, zorder=0)
    ax.set_xlim(0, 1.35 * largest)
    if start:
        ax.plot(1, base, "o", color=colors([base])[0])  # a bar from 1 to 1 has no length
        ax.set(xscale="log", xlim=(smallest / 1.05, largest * (largest / smallest) ** 0.35))
        ax.xaxis.set_major_formatter("{x:g}")
    for y, timing in enumerate(timings.values()):
        text, right = f"{digits(value[y])}×  ({in_words(timing.median)})", max(high[y], 1)
        note(ax, text, (right, y), (7, 0), va="center", backgroundcolor="white")
    for name, bound in bounds.items():
        ax.axvline(bound, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
        note(ax, name, (bound, -0.5), (0, 3), ha="center", color=GREY)
    ax.set_xlabel(f"times as fast as {base} ({in_words(timings[base].median)} per {per})")
    return as_rows(ax, names)


@measured
def roofline(
    points: Mapping[str, Point],
    peak: float,
    bandwidth: float,
    *,
    ceilings: Named | None = None,
    caches: Named | None = None,
) -> Axes:
    """Draw points (FLOP/byte, FLOP/s) under the roof: `peak` FLOP/s and `bandwidth` bytes/s.

    `ceilings` are lower peaks by name, such as the peak of narrower vectors; `caches` the bytes/s
    from each cache, see `measure.machine.roofs`. After Williams, Waterman, Patterson (CACM 2009).
    """
    _, ax = plt.subplots(figsize=(8, 4.4))
    x, y = np.array(list(points.values()), float).reshape(-1, 2).T
    ridge = peak / bandwidth
    left, right = min(ridge / 24, *x / 4), max(ridge * 16, *x * 4)
    heights = min(left * bandwidth, *y / 2), 2.5 * peak
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=heights)
    for name, height in (ceilings or {}).items():
        ax.plot([height / bandwidth, right], [height, height], color=GREY, ls="--", lw=1)
        text, spot = f"{name}: {digits(height / 1e9)} GFLOP/s", (height / bandwidth, height)
        note(ax, text, spot, (20, 3), color=GREY)
    ax.plot([ridge, right], [peak, peak], color=INK)
    ax.plot([left, ridge], [left * bandwidth, peak], color=INK)
    note(ax, f"peak: {digits(peak / 1e9)} GFLOP/s", (right, peak), (-2, 3), ha="right")
    for name, rate in (caches or {}).items():
        ax.plot([left, peak / rate, ridge], [left * rate, peak, peak], color=GREY, ls=":", lw=1.2)
        text, box = f"{name} {digits(rate / 1e9)} GB/s", {"fc": "white", "ec": "none", "pad": 0.5}
        note(ax, text, (left, left * rate), (4, 4), color=GREY, fontsize=8, bbox=box)
    spot, labels = (ridge / 3, peak / 3), []
    note(ax, f"memory: {digits(bandwidth / 1e9)} GB/s", spot, (7, -3), va="top")
    for name, at, rate, color in zip(points, x, y, colors(list(points)), strict=True):
        ax.plot(at, rate, "o", color=color, markersize=8, markeredgecolor="white")
        share = "" if caches else f" ({rate / min(peak, at * bandwidth):.0%} of its roof)"
        labels.append((at, rate, f"{name}{share}", color))
    label_ends(ax, labels)
    ax.set(xlabel="arithmetic intensity (FLOP/byte)", ylabel="GFLOP/s on one core")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter(lambda rate, _: f"{rate / 1e9:g}")
    return ax


@measured
def parts(times: Mapping[str, Named], *, per: str = "call", unit: str = "") -> Axes:
    """Draw stacked bars of seconds per `per`, in absolute lengths, with the total at their ends.

    With a `unit` the numbers are counts of that.
    """
    kinds = dict.fromkeys(part for each in times.values() for part in each)
    total = np.array([sum(each.values()) for each in times.values()])
    scale, shown = (1, unit) if unit else time_unit(max(total))
    words = "{:,.4g}".format if unit else in_words
    _, ax = plt.subplots(figsize=(7.5, 1.5 + 0.45 * len(times)))
    left = np.zeros(len(times))
    for part, color in zip(kinds, part_colors(kinds), strict=True):
        lengths = scale * np.array([each.get(part, 0.0) for each in times.values()])
        look = {"color": color, "label": part, "edgecolor": "white"}
        bars = ax.barh(list(times), lengths, 0.66, left, **look)
        left += lengths
    said = [", ".join(f"{k} {words(t)}" for k, t in each.items()) for each in times.values()]
    if not unit.startswith("%"):
        said = [f"{words(taken)}: {each}" for taken, each in zip(total, said, strict=True)]
    ax.bar_label(bars, said, padding=6, fontsize=8)
    ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderaxespad=0)
    ax.set(xlim=(0, 1.65 * scale * max(total)), xlabel=f"{shown} per {per}")
    return as_rows(ax, times)


def draw(report: dict, file: Path) -> None:
    """Save the speedups in a report of `measure.run` as an image file."""
    rows = report["results"]
    timings = {
        r["kernels"]: Timing(r["kernels"], tuple(r["samples"]), processes=r.get("processes", 1))
        for r in rows
    }
    base = BASE if BASE in timings else report["ratio_to"]
    title = f"An epoch of {rows[0]['n_images']:,} images, batches of {rows[0]['batch']}"
    if (network := rows[0].get("network", "report")) != "report":
        title = f"{network}: a{title[1:]}"
    if simd := bench.vectors(report):
        title += f", with {simd}"
    axes = speedups(timings, base=base, per="epoch", title=title)
    axes.figure.savefig(file, dpi=150)
    plt.close(axes.figure)
