"""When each thread did which task: time stamps taken while the tasks ran, and their picture."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.show.style import GREY, LAYERS, measured


class Span(NamedTuple):
    """A task on a thread, from `begin` to `end`, in seconds since the threads were started."""

    thread: int
    task: int
    begin: float
    end: float


def stamped(
    task: Callable[[int], object], plan: Sequence[Iterable[int]], repeats: int = 1
) -> list[Span]:
    """Run task(i) for each i of plan[t] on thread t, and note when; tasks must release the lock.

    An iterator that stands in the plan several times is a queue: who is free takes the next. Of
    several `repeats`, on the same threads, the one that ends in the middle counts.
    """
    shared = {id(part): part for part in plan if iter(part) is part}
    queues = {name: list(part) for name, part in shared.items()}

    def work(thread: int, tasks: Iterable[int], start: float) -> list[Span]:
        spans = []
        for i in tasks:
            begin = time.perf_counter()
            task(i)
            spans.append(Span(thread, i, begin - start, time.perf_counter() - start))
        return spans

    with ThreadPoolExecutor(len(plan)) as threads:
        list(threads.map(time.sleep, [0.01] * len(plan)))  # all are running
        runs = []
        for _ in range(repeats):
            again = {name: iter(tasks) for name, tasks in queues.items()}
            parts = [again.get(id(part), part) for part in plan]
            start = [time.perf_counter()] * len(plan)
            runs.append([*chain(*threads.map(work, range(len(plan)), parts, start))])
    return sorted(runs, key=lambda run: max(span.end for span in run))[repeats // 2]


@measured
def spans(found: Mapping[str, Sequence[Span]]) -> np.ndarray:
    """Draw which thread did which task when: a panel for each way, a row for each thread.

    A bar is a task, from blue (low numbers) to brown (high); the dashed line ends the last.
    """
    n_threads = 1 + max(span.thread for of in found.values() for span in of)
    shape = len(found), 1
    size = (8, 0.8 + len(found) * (0.45 + 0.26 * n_threads))
    _, axes = plt.subplots(*shape, figsize=size, sharex=True, squeeze=False)
    for ax, (name, of) in zip(axes[:, 0], found.items(), strict=True):
        panel(ax, of, n_threads)
        ax.set_title(f"{name}: {1e3 * max(s.end for s in of):.3g} ms", fontsize=10, loc="left")
    axes[-1, 0].set_xlabel("ms since the start")
    return axes[:, 0]


def panel(ax: Axes, of: Sequence[Span], n_threads: int) -> None:
    """One way's tasks."""
    tasks = 1 + max(span.task for span in of)
    for span in of:
        look = {"color": LAYERS[span.task * len(LAYERS) // tasks], "edgecolor": "white"}
        ax.barh(span.thread, 1e3 * (span.end - span.begin), 0.8, 1e3 * span.begin, lw=0.5, **look)
    ax.axvline(1e3 * max(s.end for s in of), color=GREY, linestyle="--", linewidth=1.2)
    ax.set(ylim=(n_threads - 0.4, -0.6))
    ax.set_yticks(range(n_threads), [f"thread {t}" for t in range(n_threads)])
    ax.grid(axis="y", visible=False)
