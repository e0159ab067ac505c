"""Lesson 12, stationarity: times, drawings, and the exercises."""

import functools
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds, operation, threads
from cnnlab.check.inputs import STRIDE_ONE, case
from cnnlab.kernels import reference
from cnnlab.measure import bench, machine
from cnnlab.measure import timing as measure
from cnnlab.measure.timing import Timing
from cnnlab.plots import pictures, stepper
from cnnlab.plots.style import COLORS, INK, colors, figure, style

SIZES = [(1, 1, 9, 9), (3, 4, 9, 12), (2, 2, 5, 21), (1, 7, 14, 29), (17, 3, 8, 37)]  # N F H W
FIVE = [case("filters of 5 × 5", n, 1, f, h, w, 5) for n, f, h, w in SIZES]


def prove(name: str, kernel: Callable, cases: Sequence = STRIDE_ONE) -> None:
    """Prove a kernel of the operation `name`, with windows one apart."""
    print(f"{kernel.__name__} ", end="")
    operation.prove(name, kernel, cases=cases)


def timed(name: str, kernels: Mapping, n_images: int = 8, terms: Mapping | None = None) -> dict:
    """Check and time kernels of an operation at the network's sizes; `terms` divide their times."""
    arrays, _ = bench.layer_arguments(name, n_images)
    for key, kernel in kernels.items():
        arrays[-1][:] = np.nan
        bench.checked(name, key, kernel, arrays, ())
    calls = {key: functools.partial(kernel, *arrays) for key, kernel in kernels.items()}
    result = measure.compare(calls, repeats=61)
    return {key: bench.scaled(each, 1 / (terms or {}).get(key, 1)) for key, each in result.items()}


def by_length(kernels: Mapping[str, Callable], lengths: Sequence[int]) -> dict[str, dict]:
    """The Timing of forward kernels for rows of other lengths, a multiply-add."""
    rng, result = np.random.default_rng(0), {name: {} for name in kernels}
    for n in lengths:
        x = rng.random((max(1, 128 // n), 1, 28, n + 4), np.float32)
        w, b = rng.random((6, 1, 5, 5), np.float32), rng.random(6, np.float32)
        z, exact = (np.empty((len(x), 6, 24, n), dtype) for dtype in (np.float32, float))
        reference.conv_forward(*(a.astype(float) for a in (x, w, b)), exact)
        calls = {key: functools.partial(kernel, x, w, b, z) for key, kernel in kernels.items()}
        for key, call in calls.items():
            call()
            measure.same(z, exact, name=f"{key}, rows of {n}")
        for key, timing in measure.compare(calls, repeats=31).items():
            result[key][n] = bench.scaled(timing, 1 / (25 * z.size))
    return result


# --- pictures -------------------------------------------------------------------------------------


def lengths(result: Mapping[str, Mapping[int, Timing]], about: str) -> None:
    """Draw the time of a multiply-add over the length of a row; the title is about one kernel."""
    series = {name: list(each.values()) for name, each in result.items()}
    lines = {name: [timing.median for timing in each] for name, each in series.items()}
    sizes = list(result[about])
    lines["peak"] = [2 / machine.float32_peak()] * len(sizes)
    ps = [1e12 * result[about][n].median for n in (24, 32)]
    title = f"{about.capitalize()}: {ps[0]:.0f} ps in rows of 24, {ps[1]:.0f} in rows of 32"
    ax = pictures.times_by_size(sizes, series, lines, unit="results in a row", title=title)
    ax.set_ylabel("time of a multiply-add")


@figure
def fetched(series: Mapping[str, Sequence[int]]) -> Axes:
    """Draw kB that caches of 1, 2, 3 … lines of 64 bytes fetch, a curve for each order."""
    _, ax = plt.subplots(figsize=(7.5, 3.2))
    ax.set(yscale="log", xlim=(0.4, 40), xlabel="KiB of cache", ylabel="kB fetched for an image")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_prop_cycle(color=colors(list(series)))
    for name, n in series.items():
        ax.step(np.arange(1, len(n) + 1) / 16, 0.064 * np.array(n), where="post", label=name)
    ax.legend(frameon=False, fontsize=9)
    return ax


def what_stays(logs: Mapping[str, Sequence], shapes: Mapping[str, tuple], n: int):
    """Step through the first n multiply-adds of kernels: a row for each, see `cut`."""

    def draw(k: int, axes: np.ndarray) -> None:
        for row, (name, log) in zip(axes, logs.items(), strict=True):
            start, end = cut(log)[k : k + 2]
            done = [kind for _, kind, _ in log[:end]]
            text = f"{name}\n\n{done.count('read')} loads\n{done.count('write')} stores"
            row[0].text(0, 0.5, text, va="center", fontsize=9)
            row[0].axis("off")
            for ax, (array, shape) in zip(row[1:], shapes.items(), strict=True):
                elements(ax, array, shape, log, start, end)

    frames = pages(n, (len(logs), len(shapes) + 1), draw)
    captions = [f"Multiply-add {k + 1} of each order." for k in range(n)]
    captions[0] += " Two have stored the bias in all results before it."
    return stepper.stepper(frames, title="What stays while the rest moves", captions=captions)


def pages(n: int, panels: tuple[int, int], draw: Callable) -> list[Figure]:
    """The n frames of a stepper, each with so many panels, drawn by `draw(k, axes)`."""
    result = []
    for k in range(n):
        with style():
            page = Figure((4.4, 1.1 * panels[0]), layout="none")
            edges = {"left": 0.02, "right": 0.98, "bottom": 0.02, "top": 0.92, "hspace": 0.35}
            draw(k, page.subplots(*panels, gridspec_kw=edges))
        result.append(page)
    return result


def cut(log: Sequence) -> list[int]:
    """Where the multiply-adds of a log end, after a 0: each reads the array that is read most."""
    reads = {name: sum(entry[:2] == (name, "read") for entry in log) for name in "xw"}
    most = max(reads, key=reads.get)
    ends = [t + 1 for t, entry in enumerate(log) if entry[:2] == (most, "read")]
    return [0, *(t + (t < len(log) and log[t][:2] == ("z", "write")) for t in ends)]


def elements(ax: Axes, name: str, shape: tuple, log: Sequence, start: int, end: int) -> None:
    """One array: darker the more often used; what is read or written now; framed what stays."""
    counts = np.zeros(shape)
    for array, _, place in log[:end]:
        if array == name:
            counts.flat[place] += 1
    ax.imshow(np.minimum(counts, 3) + 1, cmap="Greys", vmin=0, vmax=12)  # few greys
    ax.set(xticks=[], yticks=[], title=name)
    ax.grid(visible=False)
    now = {place: kind for array, kind, place in log[start:end] if array == name}
    if not now:  # it stays: what was used last, or of a result what will be written next
        near = log[end:] if name == "z" else log[:start][::-1]
        now = {next(place for array, _, place in near if array == name): "stays"}
    for place, kind in now.items():
        y, x = np.unravel_index(place, shape)
        color = {"read": COLORS["vector"], "write": COLORS["device"], "stays": INK}[kind]
        look = {"fc": color, "ec": color, "lw": 2.5, "ls": "--" if kind == "stays" else "-"}
        ax.add_patch(plt.Rectangle((x - 0.4, y - 0.4), 0.8, 0.8, fill=kind != "stays", **look))


# --- the exercises --------------------------------------------------------------------------------


@kinds.kernel(
    "conv_backward_input",
    "A task may write its own row, dx[n, c, i], and nothing else. Which rows of dz does it read?",
    "Row p of dz reaches row i through row k = i - p of the filter: let k run over all for which "
    "0 <= i - k < P. Along the row you may scatter: who else writes there?",
    by=threads.kernel,
)
@numba.njit(parallel=True, fastmath={"contract"})
def rows_of_pixels(dz, w, dx):
    """Gather among rows, where tasks would collide; scatter along a row, which has one owner."""
    (N, F, P, Q), (_, C, H, _), K = dz.shape, dx.shape, w.shape[2]
    for task in numba.prange(N * C * H):
        n, c, i = task // (C * H), task // H % C, task % H
        out = dx[n, c, i]
        out[:] = np.float32(0)
        for f in range(F):
            for k in range(max(0, i - P + 1), min(K, i + 1)):
                for l in range(K):
                    weight, grads = w[f, c, k, l], dz[n, f, i - k]
                    for q in range(Q):
                        out[q + l] += weight * grads[q]


@kinds.choice(
    ["output stationary", "input stationary", "weight stationary", "two operands kept"],
    "How many multiply-adds are there for each store?",
    "One store for each multiply-add: the results stream past. What is the same in all of them?",
)
def whose_loop():
    """Every result is loaded and stored; %ymm1, a weight in all its lanes, is all that stays."""
    return "weight stationary"


@kinds.kernel(
    "conv_backward_weights",
    "How many bytes does a task pass over before it reads the first row of dz again?",
    "All taps of a filter's row use the same row of dz: let them take turns at each row.",
    by=threads.kernel,
)
@numba.njit(parallel=True, fastmath=True)
def fast_weights(x, dz, dw):
    """A row of dz serves K taps at once, not one tap in every pass."""
    (N, F, P, Q), (_, C, K, _) = dz.shape, dw.shape
    for task in numba.prange(F * C * K):
        f, c, k = task // (C * K), task // K % C, task % K
        dw[f, c, k] = np.float32(0)
        for n in range(N):
            for p in range(P):
                row, grads = x[n, c, p + k], dz[n, f, p]
                for l in range(K):
                    total = np.float32(0)
                    for q in range(Q):
                        total += grads[q] * row[q + l]
                    dw[f, c, k, l] += total
