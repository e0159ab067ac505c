"""Lesson 10, threads: a whole step, drawings, and the exercises."""

import functools
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from cnnlab.check import kinds
from cnnlab.measure import bench
from cnnlab.measure.timing import Timing
from cnnlab.plots import stepper
from cnnlab.plots.style import GREY, INK, LAYERS, colors, label_ends, measured

Span = tuple[int, int, float, float]  # a thread, a task, when it began and ended


def whole_step(data, batch: int, n_threads: int) -> dict[str, Timing]:
    """A step by vector and threads; and by networks on their own, 1 and n at a time."""
    rivals = bench.contestants(["vector", "threads"], data, batch, n_threads, None)
    own = bench.OnTheirOwn(rivals["vector"], n_threads)
    own.order = own.order[: 64 * batch]  # of its 128 steps: far longer than it takes to start
    rivals["vector"].n_steps = rivals["threads"].n_steps = 64
    others = {f"{n} on their own": functools.partial(own, n) for n in (1, n_threads)}
    with own.threads:
        return bench.step_times(rivals, others=others, repeats=11, min_time=0.02)


# --- pictures -------------------------------------------------------------------------------------


@measured
def over(
    ticks: Sequence | Mapping, series: Mapping[str, Sequence], bounds: Mapping, axes: tuple
) -> Axes:
    """Draw timings, lists of seconds or ratios, and dashed bounds, over settings or a mapping's."""
    _, ax = plt.subplots(figsize=(7, 3.2))
    labels, at = [], list(ticks.values() if isinstance(ticks, Mapping) else range(len(ticks)))
    scale = 1e6 if "µs" in axes[1] else 1
    for (name, each), color in zip(series.items(), colors(list(series)), strict=True):
        each = [Timing(name, tuple(r)) if isinstance(r, list) else r for r in each]
        points = [(getattr(r, "median", None) or r.value, r.low, r.high) for r in each]
        value, low, high = scale * np.array(points).T
        ax.errorbar(at, value, [value - low, high - value], fmt="o-", color=color)
        labels.append((at[-1], value[-1], name, color))
    for name, values in bounds.items():
        ax.plot(at, scale * np.array(values), "--", color=GREY, linewidth=1.2)
        labels.append((at[-1], scale * values[-1], name, GREY))
    ax.set(xlabel=axes[0], ylabel=axes[1])
    ax.set_xticks(at, list(ticks))
    bottom, top = ax.get_ylim()
    if top > 4 * bottom:
        ax.set_yscale("log")
        ax.minorticks_off()
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
    label_ends(ax, labels)
    return ax


def bars(ax: Axes, spans: Sequence[Span], n_tasks: int) -> None:
    """Draw tasks as bars, from blue to brown by their numbers, a row for each thread."""
    for thread, task, begin, end in spans:
        look = {"color": LAYERS[task * len(LAYERS) // n_tasks], "edgecolor": "white", "lw": 0.5}
        ax.barh(thread, end - begin, 0.8, begin, **look)
    ax.grid(axis="y", visible=False)


@measured
def joins(panels: Mapping[str, tuple[Sequence[Span], Timing]], ideal: float) -> np.ndarray:
    """Draw schedules on virtual cores in µs, and when real threads joined; dashed: `ideal`."""
    n_threads = 1 + max(span[0] for spans, _ in panels.values() for span in spans)
    most = max(max(1e6 * real.median, *(s[3] for s in spans)) for spans, real in panels.values())
    height = 0.8 + len(panels) * (0.4 + 0.22 * n_threads)
    _, axes = plt.subplots(len(panels), figsize=(8, height), sharex=True, squeeze=False)
    for ax, (name, (spans, real)) in zip(axes[:, 0], panels.items(), strict=True):
        bars(ax, spans, len(spans))
        ax.axvline(ideal, color=GREY, linestyle="--", linewidth=1.2)
        ax.axvspan(1e6 * real.low, 1e6 * real.high, color=INK, alpha=0.25, linewidth=0)
        ax.axvline(1e6 * real.median, color=INK, linewidth=1.5)
        ax.set_title(name, fontsize=10, loc="left")
        ax.set(ylim=(n_threads - 0.4, -0.6), yticks=range(n_threads), ylabel="core")
    axes[-1, 0].set(xlim=(0, 1.25 * most), xlabel="µs (dashed: even share; black: real; grey: 95%)")
    return axes[:, 0]


def schedules(plans: Mapping[str, Sequence[Span]], n_cores: int, ideal: float):
    """Step through schedules on virtual cores: in a frame, each begins two tasks more, or joins.

    All plans have as many tasks; `ideal` is the time of an even share.
    """
    n, gap, pages = len(next(iter(plans.values()))), n_cores + 1.8, []
    most = max(span[3] for spans in plans.values() for span in spans)
    for k in (*range(1, n, 2), n):
        ax = stepper.frame((4.2, 0.75 * len(plans)))
        for top, (name, spans) in zip(np.arange(len(plans)) * gap, plans.items(), strict=True):
            done = sorted(spans, key=lambda span: span[2])[: k + 1]
            bars(ax, [(top + core, *rest) for core, *rest in done], n)
            for core, _, begin, end in done[-2:] * (k < n):
                ax.barh(top + core, end - begin, 0.8, begin, fc="none", ec=INK, lw=1.5)
            last = max(span[3] for span in spans)
            idle = n_cores * last - sum(end - begin for *_, begin, end in spans)
            end_of = f": joins at {last:.2f}, idle {idle:.2f}" * (k == n)
            ax.text(0, top - 0.6, name + end_of, fontsize=8)
            for x, look in ((ideal, "--"), *[(last, "-")] * (k == n)):
                ax.plot([x, x], [top - 0.5, top + n_cores - 0.5], look, color=INK, linewidth=1)
        ax.set(xlim=(0, 1.02 * most), ylim=(gap * len(plans) - 1.2, -1.7))
        ax.axis("off")
        pages.append(ax.figure)
    captions = [f"Tasks {k} and {k + 1} of {n} begin." for k in range(1, n, 2)]
    captions.append("The join: how late is it, and how long did cores wait?")
    title = "Fork, tasks, join on four virtual cores"
    return stepper.stepper(pages, title=title, captions=captions)


# --- the exercises --------------------------------------------------------------------------------


@kinds.labels(
    ["yes", "no"],
    ["who else uses a[i - 1]?"] * 2 + ["who writes b[2 * i]?", "who needs b[i]?"],
    "Write down what iterations 1 and 2 read, and what they write.",
)
def parallel_loops():
    """`shift` and `twice` only read what is shared; the others read what another writes."""
    return ["yes", "no", "yes", "no"]


def wrong_chunks(answer: Callable) -> str:
    """What is wrong with the chunks of a guided schedule, or nothing."""
    for n_tasks, n_threads in ((1, 4), (6, 4), (96, 2), (100, 3), (1000, 16)):
        got, expected = answer(n_tasks, n_threads), guided.model()(n_tasks, n_threads)
        if list(map(list, got)) != list(map(list, expected)):
            chunks = f"{len(got)} chunks with {sum(map(len, got))} tasks, {got[:3]} at first"
            return f"{n_tasks} tasks on {n_threads} threads: not yet in {chunks}"
    return ""


@kinds.tested(
    wrong_chunks,
    "How many tasks are left when chunk k is taken, and what is half of an even share of them?",
    "Round up, -(-left // (2 * n_threads)), so that the last chunks have one task.",
)
def guided(n_tasks, n_threads):
    """Large chunks first, for few visits; small ones last: 1.02, 1.03 and 1.14 in the table."""
    chunks, first = [], 0
    while first < n_tasks:
        size = -(-(n_tasks - first) // (2 * n_threads))
        chunks.append(range(first, first + size))
        first += size
    return chunks


def wrong_meeting(answer: Callable) -> str:
    """What goes wrong where virtual threads meet three times at a barrier, or nothing."""
    for size, seed in [(size, seed) for size in (1, 2, 3, 5) for seed in range(30)]:
        rng, shared, here = np.random.default_rng(seed), [0, 0], [0] * 3

        def thread(size=size, shared=shared, here=here):
            for meeting in range(3):
                here[meeting] += 1
                yield from answer(shared, size)
                if here[meeting] < size:
                    raise ValueError(f"one of {size} passed meeting {meeting} before all came")

        alive = [thread() for _ in range(size)]
        for _ in range(1000 * size):
            k = int(rng.integers(len(alive) or 1))
            if alive and next(alive[k], "done") == "done":
                del alive[k]
        if alive:
            return f"{len(alive)} of {size} threads wait forever; {here} came to the meetings"
    return ""


@kinds.tested(
    wrong_meeting,
    "The last sets the number back. What do the others see when they look again?",
    "Wait for something that never returns to what it was: shared[1] may count the meetings.",
)
def barrier(shared, size):
    """Whoever waits looks at the number of the meeting, which only grows: none can miss it."""
    meeting = shared[1]
    shared[0] += 1
    if shared[0] == size:
        shared[:] = 0, meeting + 1
    while shared[1] == meeting:
        yield


@kinds.labels(
    ["too few tasks", "a serial share", "starts", "the wrong clock"],
    ["what is left with many threads?", "where is it flat?", "what falls?", "what grows?"],
    "Work out what each cause does to 600 µs: rounds, s + (1 − s) / n, a price for each thread.",
)
def causes():
    """A tends to 150 µs, B falls in rounds, C adds up the time of all cores, D turns up again."""
    return ["a serial share", "too few tasks", "the wrong clock", "starts"]
