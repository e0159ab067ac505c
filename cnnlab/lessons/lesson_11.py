"""Lesson 11, reductions: threads on one core, drawings, and the exercises."""

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping, Sequence

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds, threads
from cnnlab.measure.timing import Timing, digits
from cnnlab.plots import stepper
from cnnlab.plots.style import COLORS, ERRORS, GREY, as_rows, measured, note


@contextlib.contextmanager
def on_one_core() -> Iterator[bool]:
    """All threads of this process take turns on one core; yields whether the system allows that."""
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    before = {}
    for thread in map(int, os.listdir("/proc/self/task")):
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            before[thread] = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, {min(before[thread])})
    try:
        yield True
    finally:
        for thread, cores in before.items():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, cores)


# --- pictures -------------------------------------------------------------------------------------


@measured
def losses(shares: Mapping[str, tuple[int, np.ndarray]]) -> Axes:
    """Draw the share that each sum lost, a row for each (threads, shares); ticks at k of P."""
    _, ax = plt.subplots(figsize=(7.5, 1.1 + 0.55 * len(shares)))
    for y, (n_threads, lost) in enumerate(shares.values()):
        at = np.arange(1, n_threads) / n_threads
        ax.vlines(at, y - 0.35, y + 0.35, color=GREY, lw=1, ls=":")
        beside = np.linspace(-0.25, 0.25, lost.size)
        ax.plot(lost.ravel(), y + beside, "o", color=COLORS["device"], ms=4, alpha=0.6)
    ax.set(xlim=(-0.02, 1), xlabel="share of its additions that a sum has lost")
    ax.set_yticks(range(len(shares)), list(shares))
    ax.xaxis.set_major_formatter("{x:.0%}")
    return as_rows(ax, list(shares))


def boxes(ax: Axes, texts: Mapping, arrow: tuple | None) -> None:
    """Write texts in boxes, each with its colour, at places in a frame; an arrow between two."""
    ax.axis("off")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    for at, (text, color) in texts.items():
        box = {"boxstyle": "round,pad=0.5", "fc": "white", "ec": color, "lw": 2}
        ax.text(*at, text, ha="center", va="center", fontsize=11, bbox=box)
    if arrow:
        look = {"arrowstyle": "-|>", "lw": 2, "color": COLORS["vector"], "shrinkA": 40}
        ax.annotate("", arrow[1], arrow[0], arrowprops=look | {"shrinkB": 40}, zorder=0)


def interleaving(states: Sequence, schedule: Sequence[int]) -> stepper.Stepper:
    """Step through loads and stores: states (memory, ((steps done, register), …)), who moved."""
    frames, captions = [], ["Nobody has moved."]
    cell, spots = (0.5, 0.85), [(0.22, 0.15), (0.78, 0.15)]
    for (memory, each), mover in zip(states, [None, *schedule], strict=True):
        if mover is not None and each[mover][0] % 3 == 2:  # it adds; the next frame shows the store
            continue
        texts, arrow = {cell: (f"memory\n{memory}", COLORS["device"])}, None
        for t, (done, register) in enumerate(each):
            held = register if done % 3 else "–"
            color = COLORS["vector"] if t == mover else GREY
            texts[spots[t]] = f"thread {t}, {done // 3} added\nregister: {held}", color
            if t == mover:
                verb, arrow = [("stores", (spots[t], cell)), ("loads", (cell, spots[t]))][done % 3]
                captions.append(f"Thread {t} {verb} {register}.")
        frames.append(functools.partial(boxes, texts=texts, arrow=arrow))
    title = f"Of six additions, {states[-1][0]} are left"
    return stepper.stepper(frames, title=title, captions=captions)


def lines(runs: Mapping[str, Sequence], n: int) -> stepper.Stepper:
    """Step through n accesses (core, kind, line, copies, moves), in two layouts of the rows."""
    frames, captions, names = [], [], {"M": "modified", "S": "shared", "I": "invalid"}
    for k in range(n):
        texts, arrow, moved = {}, None, ""
        for (layout, steps), y in zip(runs.items(), (0.78, 0.22), strict=True):
            core, kind, line, copies, moves = steps[k]
            texts[0.14, y] = f"{layout}\nline {line}\nmoves: {moves}", "white"
            spots = [(0.45, y), (0.87, y)]
            for c, state in enumerate(copies):
                color = COLORS["vector"] if c == core else GREY
                texts[spots[c]] = f"core {c}\n{names[state]}", color
            if moves > (steps[k - 1][-1] if k else 0):
                arrow, moved = (spots[1 - core], spots[core]), f"; {layout}, its line moves"
        frames.append(functools.partial(boxes, texts=texts, arrow=arrow))
        captions.append(f"Core {core} {kind}s its sum{moved}.")
    return stepper.stepper(frames, title="Who holds the line?", captions=captions)


@measured
def chain(
    rows: Mapping[str, Sequence[Timing]], names: Sequence[str], additions: int, bounds: Sequence
) -> Axes:
    """Draw ns an addition: a row for each kernel, a point and a bound for each of `names`."""
    _, ax = plt.subplots(figsize=(8, 1.4 + 0.42 * len(rows)))
    for k, name in enumerate(names):
        middle, low, high = np.array([(s[k].median, s[k].low, s[k].high) for s in rows.values()]).T
        x, errors = middle / additions * 1e9, np.array([middle - low, high - middle])
        color = COLORS[("vector", "device")[k]]
        look = {"xerr": errors / additions * 1e9, "fmt": "o", "color": color, "label": name}
        ax.errorbar(x, list(rows), **look | ERRORS)
        for y, value in enumerate(x):
            look = {"ha": "center", "va": "center", "fontsize": 8, "color": color}
            note(ax, digits(value), (value, y), (0, (10, -10)[k]), **look)
        ax.axvline(bounds[k] / additions * 1e9, color=color, ls="--", lw=1.2, zorder=0)
    ax.set(xscale="log", xlabel="nanoseconds an addition")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.legend(frameon=False, fontsize=9, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    return as_rows(ax, list(rows))


# --- the exercises --------------------------------------------------------------------------------


def maximum_among_others(answer) -> str:
    """What goes wrong with an atomic maximum while another thread stores between its steps."""
    for first, others, value in ((3, [], 5), (9, [], 5), (3, [4], 5), (3, [8], 5), (0, [1, 2], 7)):
        memory, left, calls = [first], list(others), []

        def swap(old, new, memory=memory, left=left, calls=calls):
            calls.append(old)
            if len(calls) > 9:
                raise TimeoutError("it never ends: what does it expect to find in memory?")
            if left:
                memory[0] = left.pop(0)  # somebody else was faster
            seen = memory[0]
            if seen == old:
                memory[0] = new
            return seen

        answer(lambda memory=memory: memory[0], swap, value)
        if memory[0] != max(first, value, *others):
            between = f", others store {others} meanwhile" if others else ""
            return f"memory holds {first}{between}, the value is {value}: it ends as {memory[0]}"
    return ""


@kinds.tested(
    maximum_among_others,
    "A swap fails if somebody has stored since you loaded. What does it return then?",
    "Begin again with what the swap found: is your value still the larger?",
)
def maximum(load, compare_and_swap, value):
    """It tries again only while its value is larger than what it found."""
    old = load()
    while old < value:
        seen = compare_and_swap(old, value)
        if seen == old:
            return
        old = seen


@kinds.kernel(
    "conv_backward_bias",
    "Of which n and f are iterations 0 and 1? And which element of `partial` do they add to?",
    "n is i % N. What is i // F?",
    by=threads.kernel,
)
@numba.njit(parallel=True)
def mended(dz, db):
    """In i, images are next to each other. Not yet fast: each image is one chain of additions."""
    N, F = dz.shape[:2]
    partial = np.zeros((N, F), dz.dtype)
    for i in numba.prange(N * F):
        n, f = i % N, i // N
        image = dz[n, f].reshape(-1)
        for m in range(image.size):
            partial[n, f] += image[m]
    for f in range(F):
        db[f] = 0
        for n in range(N):
            db[f] += partial[n, f]
