"""Lesson 00b, the machine: drawings, and the exercises."""

from collections.abc import Mapping, Sequence
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import inputs, kinds
from cnnlab.measure.timing import Timing, in_words
from cnnlab.plots import stepper, style
from cnnlab.plots.style import ERRORS, GREY, OTHERS, note

LINE = 8  # uint64 in a cache line of 64 bytes


# --- pictures -------------------------------------------------------------------------------------


def in_bytes(size: float, _=None) -> str:
    """A size in KiB or MiB, short."""
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"


@style.measured
def curve(
    timings: Mapping[float, Timing],
    *,
    xlabel: str,
    ylabel: str,
    bounds: Mapping[str, Sequence[float]] | None = None,
    marks: Mapping[str, float] | None = None,
    rate: bool = False,
) -> Axes:
    """Draw ns for a unit of work over sizes, or with `rate` units in a ns; bounds are dashed."""
    _, ax = plt.subplots(figsize=(7.5, 3.6))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.loglog(base=2)
    sizes = list(timings)
    y = np.array([[1e9 * s / t.work for s in (t.median, t.low, t.high)] for t in timings.values()])
    y = (1 / y if rate else y).T
    ax.errorbar(sizes, y[0], abs(y[1:] - y[0]), fmt="o-", ms=4, color=OTHERS[0], **ERRORS)
    for values in (bounds or {}).values():
        ax.plot(sizes, values, "--", color=GREY, linewidth=1.2)
    ax.set_ylim(top=1.6 * ax.get_ylim()[1])
    for name, size in (marks or {}).items():
        ax.axvline(size, color=GREY, linestyle=":", linewidth=1.2)
        note(ax, name, (size, ax.get_ylim()[1]), (-3, -2), ha="right", va="top", color=GREY)
    ax.xaxis.set_major_formatter(in_bytes if sizes[-1] > 4096 else "{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")
    style.label_ends(ax, [(sizes[-1], y[-1], name, GREY) for name, y in (bounds or {}).items()])
    return ax


@style.measured
def prices(seconds: Mapping[str, float]) -> Axes:
    """Draw what things cost, a bar for each, on a logarithmic axis."""
    _, ax = plt.subplots(figsize=(7.5, 1.2 + 0.36 * len(seconds)))
    costs = list(seconds.values())
    bars = ax.barh(list(seconds), costs, 0.6, log=True, color=OTHERS[0])
    ax.bar_label(bars, map(in_words, costs), padding=5)
    ax.set(xlim=(min(costs) / 2, 6 * max(costs)), xlabel="time")
    ax.xaxis.set_major_formatter(lambda s, _: in_words(s))
    return style.as_rows(ax, list(seconds))


def in_flight():
    """Step through lines on their way: a chain of addresses, and addresses known beforehand."""
    latency, frames, captions = 4, [], []
    for now in range(9):
        ax = stepper.frame()
        for top, gap, name in ((0, latency, "a chain"), (3, 1, "addresses known")):
            starts = range(0, now + 1, gap)
            here = sum(start + latency <= now for start in starts)
            for start in starts:
                color = style.COLORS["vector" if start + latency > now else "threads"]
                length = min(now - start, latency) + 0.1
                ax.barh(top + start % latency, length, 0.7, start, color=color, ec="white")
            text = f"{name}: {len(starts) - here} in flight, {64 * here} bytes arrived"
            note(ax, text, (0, top - 0.6), (0, 2), fontsize=9, bbox={"fc": "white", "ec": "none"})
        ax.axvline(now, color=style.INK, linewidth=1)
        ax.set(xlim=(-0.2, 9.5), ylim=(6.6, -1.6), yticks=[], xlabel="time")
        ax.grid(visible=False)
        frames.append(ax.figure)
        captions.append(f"Time {now}. A latency is {latency}. Blue: on its way. Green: here.")
    return stepper.stepper(frames, title="Lines in flight", captions=captions)


def lines_fetched():
    """Step through 4 lines of 16 numbers by rows, then by columns; the cache holds one line."""
    rows, columns = np.indices((4, 16)).reshape(2, -1).T, np.indices((16, 4)).reshape(2, -1)[::-1].T
    frames, captions = [], []
    for name, order, shown in (
        ("By rows", rows, (1, 2, 16, 17, 64)),
        ("By columns", columns, (1, 2, 3, 4, 5, 64)),
    ):
        for n in shown:
            fetched = 1 + np.count_nonzero(np.diff(order[:n, 0]))
            frames.append(lambda ax, done=order[:n], fetched=fetched: grid(ax, done, fetched))
            captions.append(f"{name}. Numbers read: {n}. Lines fetched: {fetched}.")
    return stepper.stepper(frames, title="A line, not a number", captions=captions)


def grid(ax: Axes, done: np.ndarray, fetched: int) -> None:
    """A matrix, a line a row, that in the cache shaded; a dot a number read, a bar of lines."""
    i, j = done[-1]
    ax.add_patch(plt.Rectangle((0, i), 16, 1, fc="#cfe3f2"))
    ax.hlines(range(5), 0, 16, color=GREY, lw=0.6)
    ax.vlines(range(17), 0, 4, color=GREY, lw=0.6)
    ax.plot(*(done.T[::-1] + 0.5), "o", color=GREY, markersize=3)
    ax.add_patch(plt.Rectangle((j, i), 1, 1, fill=False, ec=style.COLORS["device"], lw=2.5))
    ax.barh(4.8, fetched / 4, 0.6, align="center", color=GREY)
    note(ax, f"lines fetched: {fetched}", (0, 5.2), (0, 0), va="top")
    ax.set(xlim=(-0.2, 16.2), ylim=(6, -0.2), aspect="equal")
    ax.axis("off")


# --- the exercises --------------------------------------------------------------------------------


@kinds.number(
    "Little's law: bytes in flight are latency times bandwidth. How many lines are that?",
    "80 ns at 200 GB/s are 16,000 bytes, 250 lines. A core has 20 of them: round up.",
)
def cores():
    """80 ns × 200 GB/s = 16,000 bytes in flight, 250 lines of 64: 12.5 cores with 20 each."""
    return 13


@kinds.tested(
    lambda mine: wrong_latency(mine),
    "Where does each call begin, and how many different lines do all calls see together?",
    "Make `at` once, before the loop: follow leaves in it where it stopped.",
)
def latency(follow, ring, calls, steps):
    """Each call goes on where the last one stopped; before, all saw 10,000 lines, 625 KiB."""
    at, samples = np.zeros(1, np.uint64), []
    for _ in range(calls):
        start = perf_counter()
        follow(ring, at, steps)
        samples.append((perf_counter() - start) / steps)
    return np.median(samples)


def wrong_latency(mine) -> str:
    """What is wrong with a benchmark of a ring of 1,000 lines, in 25 calls of 100 steps."""
    ring, seen = np.roll(np.arange(0, LINE * 1000, LINE), -1).repeat(LINE), []
    spent = []

    def follow(ring, at, steps):
        start = perf_counter()
        for _ in range(steps):
            at[0] = ring[at[0]]
            seen.append(int(at[0]))
        spent.append((perf_counter() - start) / steps)

    seconds = mine(follow, ring.astype(np.uint64), 25, 100)
    if (lines := len(set(seen[-1000:]))) < 1000:
        return f"the working set of its last calls is {lines / 16:g} KiB, the ring has 62.5 KiB"
    near = 0 < seconds < 30 * np.median(spent)  # a call takes 100 times as long as a step
    return "" if near else f"expected seconds of a step, got {seconds}"


@kinds.tested(
    lambda mine: wrong_rings(mine),
    "Shuffle all lines once, then cut the order into k parts: each part is a ring of its own.",
    "In a part, order[m] holds order[m + 1], and the last holds the first: np.roll, part by part.",
)
def rings(n_lines, k):
    """A shuffle, cut into k parts; np.roll closes each, so no chain enters another's lines."""
    order = 8 * np.random.default_rng(0).permutation(n_lines).astype(np.uint64)
    ring = np.zeros(8 * n_lines, np.uint64)
    parts = np.array_split(order, k)
    for part in parts:
        ring[part] = np.roll(part, -1)
    return ring, np.array([part[0] for part in parts])


def wrong_rings(mine) -> str:
    """What is wrong with a function that makes k rings through n lines; "" if nothing."""
    for n, k in ((8, 1), (8, 2), (63, 4), (1000, 7)):
        (ring, starts), walks = mine(n, k), []
        for start in map(int, starts):
            walks.append([start])
            while len(walks[-1]) <= n and (at := int(ring[walks[-1][-1]])) != start:
                walks[-1].append(at)
        seen, lengths = np.concatenate(walks), [len(walk) for walk in walks]
        if len(walks) != k or sorted(seen) != list(range(0, LINE * n, LINE)):
            return f"{n} lines: {len(set(seen))} places in {lengths} steps, for {k} rings"
        if max(lengths) - min(lengths) > 1:
            return f"{n} lines: {k} rings have {lengths}"
    ascending = np.mean(np.diff(seen) == LINE) > 0.5
    return "neighbours follow each other: a prefetcher knows the next line" * bool(ascending)


@kinds.tested(
    lambda mine: wrong_sum(mine),
    "What about the numbers left over, when the length is no multiple of four? A loop takes them.",
)
def four_sums(a):
    """Four accumulators for all but the last few numbers; a remainder loop takes those."""
    s = t = u = v = np.float32(0)
    whole = len(a) // 4 * 4
    for i in range(0, whole, 4):
        s += a[i]
        t += a[i + 1]
        u += a[i + 2]
        v += a[i + 3]
    for i in range(whole, len(a)):
        s += a[i]
    return (s + t) + (u + v)


def wrong_sum(mine) -> str:
    """What is wrong with a function that adds up float32 in four accumulators; "" if nothing."""
    for n in (0, 1, 2, 3, 4, 5, 7, 8, 63, 1000, 1001):
        a = np.random.default_rng([n, inputs.first_seed()]).random(n, np.float32)
        expected, got = a.sum(dtype=np.float64), mine(a.copy())
        if got is None or not np.isscalar(got) or not abs(float(got) - expected) <= 1e-5 * n:
            return f"of {n} numbers: expected {expected:.6g}, got {got}"
    large = np.append(np.float32(2**24), np.ones(4003, np.float32))  # 2**24 + 1 rounds to 2**24
    lost = 2**24 + 4003 - mine(large)
    return f"one chain of additions: it loses {lost:.0f} ones to rounding" if lost > 2000 else ""
