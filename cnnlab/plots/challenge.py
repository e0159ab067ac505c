"""The pictures of challenges: your kernel beside the rungs of the lesson."""

from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from cnnlab import cuda
from cnnlab.measure import challenge as measured
from cnnlab.measure.challenge import GOAL, MINE, MPI, Traffic
from cnnlab.measure.timing import ratio
from cnnlab.plots import charts
from cnnlab.plots.style import GREY, as_rows, colors, figure, note


def challenge(
    operation: str, mine: Callable, rungs: Mapping[str, Callable] | None = None, **how
) -> Axes | None:
    """Prove a kernel, say what share of `vector` and of the machine's roof it reaches, and draw it.

    `rungs` are kernels of the lesson by name, with the arguments of `mine`; `how` goes to
    `measure.challenge.challenge`: `n_threads`, `batch`, `repeats`. The dashed line is the roof.
    Returns None where the kernel is not right yet: only its verdict is shown.
    """
    result = measured.challenge(operation, mine, rungs, **how)
    if result is None:
        return None
    print(result)
    base, batch = next(iter(result.timings)), how.get("batch", 64)
    bounds = {"roof": result.timings[base].median / result.floor} if result.floor else None
    title = f"Your {operation} is at {result.of_goal:.0%} of {GOAL}"
    return charts.speedups(
        result.timings, base, per=f"batch of {batch}", title=title, bounds=bounds
    )


def challenge_ranks(
    operation: str, mine: Callable, rungs: Mapping[str, Callable] | None = None, **how
) -> Axes | None:
    """Prove a collective, say what share of the MPI library's speed it reaches, and draw it.

    `how` goes to `measure.challenge.challenge_ranks`: `n`, `n_ranks`, `repeats`. Returns None where
    the collective is not right yet: only its verdict is shown.
    """
    timings = measured.challenge_ranks(operation, mine, rungs, **how)
    if timings is None:
        return None
    share = ratio(timings[MPI], timings[MINE]).value
    title = f"Your {operation} reaches {share:.0%} of the speed of MPI's own"
    print(f"{title}.")
    return charts.speedups(timings, base=MPI, title=title)


def challenge_traffic(
    operation: str, mine: Callable, rungs: Mapping[str, Callable] | None = None, **how
) -> Axes | None:
    """Prove kernels in CUDA C, say how many times the least bytes they move, and draw that.

    `mine` and the `rungs` launch kernels on NumPy arrays; `how` goes to
    `measure.challenge.challenge_traffic`: `batch`. Returns None where the kernel is not right
    yet: only its verdict is shown.
    """
    result = measured.challenge_traffic(operation, mine, rungs, **how)
    if result is None:
        return None
    print(result)
    times = result.moved[MINE] / result.least
    return bytes_moved(result, title=f"Your {operation} moves {times:.3g} times the least bytes")


@figure
def bytes_moved(result: Traffic) -> Axes:
    """Draw the bytes that kernels move, beside the least that any kernel moves."""
    _, ax = plt.subplots(figsize=(7, 1.3 + 0.4 * len(result.moved)))
    names, sizes = list(result.moved), [moved / 1e3 for moved in result.moved.values()]
    ax.barh(names, sizes, 0.62, color=colors(names))
    ax.axvline(result.least / 1e3, color=GREY, linestyle="--", linewidth=1.2)
    note(ax, "any kernel must", (result.least / 1e3, -0.5), (0, 3), ha="center", color=GREY)
    for y, size in enumerate(sizes):
        text = f"{size:,.0f} kB, {1e3 * size / result.least:.3g} times that"
        note(ax, text, (size, y), (5, 0), va="center")
    ax.set(xlabel="kB moved, as if nothing were cached", xlim=(0, 1.7 * max(sizes)))
    return as_rows(ax, names)


# --- the kernels of an operation in CUDA C side by side, by what this machine can say of them -----


def rungs(operation: str, functions: Mapping[str, Callable], *, batch: int = 256) -> Axes:
    """Draw kernels side by side: on a GPU their times, on the emulator the bytes that they move.

    The emulator's time says nothing about a GPU. The times are those of `batch` images whose arrays
    stay there, the bytes those of one image, as if nothing were cached.
    """
    if cuda.gpu()[0]:
        timings = measured.event_times(operation, functions, batch)
        best = min(timings, key=lambda name: timings[name].median)
        title = f"{operation}, on {cuda.where()}: the fastest is “{best}”"
        return charts.speedups(timings, next(iter(timings)), per=f"batch of {batch}", title=title)
    result = measured.count(operation, functions)
    least = min(result.moved.values())
    best = [name for name, moved in result.moved.items() if moved == least]
    who = f"“{best[0]}” moves" if len(best) == 1 else f"{len(best)} of {len(result.moved)} move"
    times = least / result.least
    title = f"{operation}: {who} the least, {times:.3g} times what any kernel must"
    return bytes_moved(result, title=title)
