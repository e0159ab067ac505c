"""Pictures of what a kernel's threads touch, from its trace: element by element, bank by bank."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.show.style import COLORS, GREY, INK, WRONG, figure

WRITE, BANKS, MOST_THREADS = 1, 32, 256


def accesses(traces: Sequence, *, threads: int = MOST_THREADS) -> np.ndarray | None:
    """Draw which thread touches which element, with a row for each launch; say what is at fault.

    A panel is an array: dots are reads, rings are writes, crosses lie outside of the array. The
    first `threads` threads are drawn. Prints a line, and returns None, where nothing was accessed.
    """
    traces = [trace for trace in traces if len(trace)]
    if not traces:
        print("No access yet: there is nothing to draw.")
        return None
    faults = [fault for trace in traces for fault in trace.faults()]
    outside = sum(int(_outside(trace).sum()) for trace in traces)
    total = sum(map(len, traces))
    kinds = ", ".join(dict.fromkeys(fault.kind for fault in faults))
    title = f"{total:,} accesses, {f'at fault: {kinds}' if faults else 'none at fault'}"
    return _draw(traces, threads, title=title + f" ({outside:,} of them)" * bool(outside))


def _outside(trace) -> np.ndarray:
    """Which accesses lie outside of their array."""
    sizes = np.array([array.size for array in trace.arrays] + [0])[trace.array]
    return (trace.index < 0) | (trace.index >= sizes)


@figure
def _draw(traces: Sequence, threads: int) -> np.ndarray:
    """Draw the elements that each thread reads and writes, a row for each launch."""
    used = [sorted({int(n) for n in trace.array if n >= 0}) for trace in traces]
    columns = max(map(len, used))
    size = (max(4, 2.25 * columns), 0.6 + 2.3 * len(traces))
    _, axes = plt.subplots(len(traces), columns, figsize=size, squeeze=False)
    for row, trace, numbers in zip(axes, traces, used, strict=True):
        who = trace.block * int(np.prod(trace.block_size)) + trace.thread
        write, outside, early = trace.flags & WRITE > 0, _outside(trace), who < threads
        for ax, number in zip(row, numbers, strict=False):
            array, mine = trace.arrays[number], (trace.array == number) & early
            for rows, look in (
                (mine & ~write & ~outside, {"color": COLORS["vector"], "s": 4}),
                (
                    mine & write & ~outside,
                    {"facecolors": "none", "edgecolors": COLORS["device"], "s": 16, "lw": 0.8},
                ),
                (mine & outside, {"color": WRONG, "s": 22, "marker": "x", "lw": 1}),
            ):
                seen = np.unique(np.stack([who[rows], trace.index[rows]]), axis=1)
                ax.scatter(*seen, **look)
            ax.axhline(array.size - 0.5, color=GREY, lw=0.8, ls="--")
            where = ", shared" if array.shared else ""
            ax.set_title(f"{array.name}{where}: {array.size:,} elements", fontsize=9)
            first = f" (the first {threads})" * bool(not early.all())
            ax.set_xlabel(f"thread{first}")
            ax.set_ylim(max(array.size, trace.index[mine].max(initial=0)), -1)
            ax.locator_params(nbins=4, integer=True)
        for ax in row[len(numbers) :]:
            ax.set_visible(False)
        row[0].set_ylabel(f"{trace.kernel}\nelement")
    return axes


@figure
def banks(trace, array: str, *, write: bool = False) -> Axes:
    """Draw the banks of the first request for a shared array that takes the most turns.

    A column is one of the 32 banks, a row a turn; a square is a word, with the number of a thread
    that wants it. A request without a conflict is one row.
    """
    requests, turns = trace.requests(array, write), trace.conflicts(array, write)
    rows = requests[int(turns.argmax())]
    number = next(i for i, each in enumerate(trace.arrays) if each.name == array)
    words = trace.index[rows] * trace.arrays[number].item // 4
    words, first = np.unique(words, return_index=True)
    _, ax = plt.subplots(figsize=(9, 1.3 + 0.32 * int(turns.max())))
    height = np.zeros(BANKS, int)
    for word, at in zip(words, first, strict=True):
        bank = word % BANKS
        look = {"color": WRONG if height[bank] else COLORS["vector"], "alpha": 0.35}
        ax.add_patch(plt.Rectangle((bank - 0.45, height[bank] - 0.42), 0.9, 0.84, **look))
        text = str(trace.thread[rows[at]] % 32)
        ax.text(bank, height[bank], text, ha="center", va="center", fontsize=7, color=INK)
        height[bank] += 1
    ax.set(xlim=(-0.6, BANKS - 0.4), ylim=(turns.max() - 0.5, -0.5), yticks=range(turns.max()))
    ax.set(xlabel="bank; the number is a thread of the warp", ylabel="turn")
    ax.set_xticks(range(0, BANKS, 4))
    ax.grid(visible=False)
    return ax
