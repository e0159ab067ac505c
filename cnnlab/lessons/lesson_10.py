"""The exercises of lesson 10."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import NamedTuple

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds, threads
from cnnlab.plots.style import GREY, LAYERS, measured


@kinds.kernel(
    "dense_forward",
    "How do you make two indices, n and o, from one that counts to N · O?",
    "n = i // O and o = i % O. The sum stays in a variable of the iteration; z[n, o] is written "
    "once, by this iteration and no other.",
    by=threads.kernel,
)
@numba.njit(parallel=True)
def dense(x, w, b, z):
    """Each iteration writes one element of z, and no two the same."""
    N, O = z.shape
    for i in numba.prange(N * O):
        n, o = i // O, i % O
        total = b[o]
        for d in range(x.shape[1]):
            total += w[o, d] * x[n, d]
        z[n, o] = total


@kinds.formula(
    lambda rng: {"tasks": int(rng.integers(1, 200)), "threads": int(rng.integers(1, 65))},
    "How many tasks does the thread have that has the most?",
    "Time counts in rounds: without threads there are as many as tasks; with them, "
    "tasks / threads, rounded up.",
)
def bound(tasks, threads):
    """The last round takes as long as the others, however few tasks it has."""
    return tasks / -(-tasks // threads)


@kinds.formula(
    lambda rng: {"efficiency": float(rng.uniform(0.55, 0.95))},
    "Write Amdahl's law for two cores, and solve it for the serial share s.",
    "2 e = 1 / (s + (1 − s) / 2) gives s = 1 / e − 1; and without end of cores, 1 / s is left.",
)
def limit(efficiency):
    """2 e = 1 / (s + (1 − s) / 2), so s = 1 / e − 1, and no number of cores passes 1 / s."""
    return 1 / (1 / efficiency - 1)


# --- when each thread did which task --------------------------------------------------------------


class TaskSpan(NamedTuple):
    """A task on a thread, from `begin` to `end`, in seconds since the threads were started."""

    thread: int
    task: int
    begin: float
    end: float


def stamped(
    task: Callable[[int], object], plan: Sequence[Iterable[int]], repeats: int = 1
) -> list[TaskSpan]:
    """Run task(i) for each i of plan[t] on thread t, and note when; tasks must release the lock.

    An iterator that stands in the plan several times is a queue: who is free takes the next. Of
    several `repeats`, on the same threads, the one that ends in the middle counts.
    """
    shared = {id(part): part for part in plan if iter(part) is part}
    queues = {name: list(part) for name, part in shared.items()}

    def work(thread: int, tasks: Iterable[int], start: float) -> list[TaskSpan]:
        spans = []
        for i in tasks:
            begin = time.perf_counter()
            task(i)
            spans.append(TaskSpan(thread, i, begin - start, time.perf_counter() - start))
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
def spans(result: Mapping[str, Sequence[TaskSpan]]) -> np.ndarray:
    """Draw which thread did which task when: a panel for each way, a row for each thread.

    A bar is a task, from blue (low numbers) to brown (high); the dashed line ends the last.
    """
    n_threads = 1 + max(span.thread for group in result.values() for span in group)
    shape = len(result), 1
    size = (8, 0.8 + len(result) * (0.45 + 0.26 * n_threads))
    _, axes = plt.subplots(*shape, figsize=size, sharex=True, squeeze=False)
    for ax, (name, group) in zip(axes[:, 0], result.items(), strict=True):
        panel(ax, group, n_threads)
        ax.set_title(f"{name}: {1e3 * max(s.end for s in group):.3g} ms", fontsize=10, loc="left")
    axes[-1, 0].set_xlabel("ms since the start")
    return axes[:, 0]


def panel(ax: Axes, group: Sequence[TaskSpan], n_threads: int) -> None:
    """One way's tasks."""
    tasks = 1 + max(span.task for span in group)
    for span in group:
        look = {"color": LAYERS[span.task * len(LAYERS) // tasks], "edgecolor": "white"}
        ax.barh(span.thread, 1e3 * (span.end - span.begin), 0.8, 1e3 * span.begin, lw=0.5, **look)
    ax.axvline(1e3 * max(s.end for s in group), color=GREY, linestyle="--", linewidth=1.2)
    ax.set(ylim=(n_threads - 0.4, -0.6))
    ax.set_yticks(range(n_threads), [f"thread {t}" for t in range(n_threads)])
    ax.grid(axis="y", visible=False)


# --- the kernels of this lesson ------------------------------------------------------------------


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_maps(x, w, b, z):
    """Parallel over the maps of each image: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in range(N):
        for f in numba.prange(F):
            for p in range(P):
                out = z[n, f, p]
                out[:] = b[f]
                for c in range(C):
                    for k in range(K):
                        row = x[n, c, p + k]
                        for l in range(K):
                            tap, w0 = row[l:], w[f, c, k, l]
                            for q in range(Q):
                                out[q] += w0 * tap[q]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_rows(x, w, b, z):
    """Maps and rows of each image in one loop: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for n in range(N):
        for i in numba.prange(F * P):
            f, p = i // P, i % P
            out = z[n, f, p]
            out[:] = b[f]
            for c in range(C):
                for k in range(K):
                    row = x[n, c, p + k]
                    for l in range(K):
                        tap, w0 = row[l:], w[f, c, k, l]
                        for q in range(Q):
                            out[q] += w0 * tap[q]


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_forward_collapsed(x, w, b, z):
    """Images, maps and rows in one loop: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    N, F, P, Q = z.shape
    C, K = w.shape[1], w.shape[2]
    for i in numba.prange(N * F * P):
        n, f, p = i // (F * P), i // P % F, i % P
        out = z[n, f, p]
        out[:] = b[f]
        for c in range(C):
            for k in range(K):
                row = x[n, c, p + k]
                for l in range(K):
                    tap, w0 = row[l:], w[f, c, k, l]
                    for q in range(Q):
                        out[q] += w0 * tap[q]


@numba.njit(parallel=True)
def triangle_blocks(rows, sums):
    """Unequal tasks in blocks, one a thread: sums[i] adds up rows[0] … rows[i], of rows (M,L)."""
    for i in numba.prange(sums.size):
        total = np.float32(0)
        for j in range(i + 1):
            for l in range(rows.shape[1]):
                total += rows[j, l]
        sums[i] = total


@numba.njit(parallel=True)
def triangle_cyclic(rows, sums, n_threads):
    """The same tasks in turn: thread t takes t, t + n_threads, t + 2 n_threads, …"""
    for t in numba.prange(n_threads):
        for i in range(t, sums.size, n_threads):
            total = np.float32(0)
            for j in range(i + 1):
                for l in range(rows.shape[1]):
                    total += rows[j, l]
            sums[i] = total


@numba.njit(nogil=True)
def triangle_task(rows, sums, i):
    """One of these tasks, for a queue; it releases Python's lock, so several run at a time."""
    total = np.float32(0)
    for j in range(i + 1):
        for l in range(rows.shape[1]):
            total += rows[j, l]
    sums[i] = total
