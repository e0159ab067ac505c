"""Lesson 12, stationarity: times, drawings, and the exercises."""

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds, machine_code, operation, threads
from cnnlab.check.inputs import STRIDE_ONE, case
from cnnlab.measure import bench, machine
from cnnlab.measure import timing as measure
from cnnlab.measure.timing import Timing
from cnnlab.plots import pictures, stepper
from cnnlab.plots.style import COLORS, INK, colors, figure

SIZES = [(1, 1, 9, 9), (3, 4, 9, 12), (2, 2, 5, 21), (1, 7, 14, 29), (17, 3, 8, 37)]  # N F H W
FIVE = [case("filters of 5 × 5", n, 1, f, h, w, 5) for n, f, h, w in SIZES]


def prove(name: str, kernel: Callable, cases: Sequence = STRIDE_ONE) -> None:
    """Prove a kernel of the operation `name`, with windows one apart."""
    print(f"{kernel.__name__} ", end="")
    operation.prove(name, kernel, cases=cases)


def timed(name: str, kernels: Mapping, n_images: int = 8, arrays=None) -> dict[str, Timing]:
    """Check and time kernels of an operation on these arrays, or at the network's sizes."""
    arrays = arrays or bench.layer_arguments(name, n_images)[0]
    for key, kernel in kernels.items():
        arrays[-1][:] = np.nan
        bench.checked(name, key, kernel, arrays, ())
    calls = {key: functools.partial(kernel, *arrays) for key, kernel in kernels.items()}
    return measure.compare(calls, repeats=13)


def by_length(kernels: Mapping, lengths: Sequence[int], one: str, other: str) -> dict:
    """Draw and return the Timing of a multiply-add in forward kernels, by length of a row."""
    rng, result = np.random.default_rng(0), {name: {} for name in kernels}
    for n in lengths:
        N = max(1, 128 // n)
        shapes = (N, 1, 28, n + 4), (6, 1, 5, 5), 6, (N, 6, 24, n)
        arrays = [rng.random(shape, np.float32) for shape in shapes]
        for key, timing in timed("conv_forward", kernels, arrays=arrays).items():
            result[key][n] = bench.scaled(timing, 1 / (25 * arrays[-1].size))
    series = {name: list(each.values()) for name, each in result.items()}
    lines = {name: [timing.median for timing in each] for name, each in series.items()}
    lines["peak"] = [2 / machine.float32_peak(0.1) for _ in lengths]
    gap = [result[one][n].median / result[other][n].median for n in (24, 256)]
    title = f"{one.capitalize()} over {other}: {gap[0]:.2f} in rows of 24, {gap[1]:.2f} of 256"
    ax = pictures.times_by_size(lengths, series, lines, unit="results in a row", title=title)
    ax.set_ylabel("time of a multiply-add")
    return result


def loop(kernel: Callable) -> list[str]:
    """The instructions of the longest loop in a compiled kernel's machine code."""
    body, *_ = machine_code.bodies(kernel).values()
    return [line.strip() for line in machine_code.instructions(body)]


# --- pictures -------------------------------------------------------------------------------------


@figure
def fetched(series: Mapping[str, Sequence[int]]) -> Axes:
    """Draw KiB that caches of 1, 2, 3 … lines fetch; dots: at most twice the least, the least."""
    _, ax = plt.subplots(figsize=(7.5, 3.2))
    ax.set(yscale="log", xlim=(0.4, 40), xlabel="KiB of cache", ylabel="KiB fetched for an image")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_prop_cycle(color=colors(list(series)))
    for name, n in series.items():
        kib, few = np.array(n) / 16, [np.argmax(np.array(n) <= most * n[-1]) for most in (2, 1)]
        line = ax.step(np.arange(1, len(n) + 1) / 16, kib, where="post", label=name)[0]
        ax.plot(np.add(few, 1) / 16, kib[few], "o", markersize=4, color=line.get_color())
    ax.legend(frameon=False, fontsize=9)
    return ax


def what_stays(logs: Mapping[str, Sequence], shapes: Mapping[str, tuple], n: int):
    """Step through the first n multiply-adds of kernels: a row for each, see `cut`."""
    frames, captions = [], [f"Multiply-add {k + 1} of each order." for k in range(n)]
    captions[0] += " Two have stored the bias in all results before it."
    for k in range(n):
        ax = stepper.frame((4, len(logs)))
        for row, (name, log) in enumerate(logs.items()):
            now, left = slice(*cut(log)[k : k + 2]), 7.5
            done = Counter(kind for _, kind, _ in log[: now.stop])
            stores = f"{done['write']} store{'s' * (done['write'] != 1)}"
            text = f"{name}\n\n{done['read']} loads\n{stores}"
            ax.text(0, 5 * row + 2, text, va="center", fontsize=9)
            for array, shape in shapes.items():
                elements(ax, array, shape, (left, 5 * row), log, now)
                left += shape[1] + 1
        ax.set(xlim=(0, left), ylim=(5 * len(logs), -1), aspect="equal")
        ax.axis("off")
        frames.append(ax.figure)
    return stepper.stepper(frames, title="What stays while the rest moves", captions=captions)


def cut(log: Sequence) -> list[int]:
    """Where the multiply-adds of a log end, after a 0: each reads the array that is read most."""
    reads = {name: sum(entry[:2] == (name, "read") for entry in log) for name in "xw"}
    most = max(reads, key=reads.get)
    ends = [t + 1 for t, entry in enumerate(log) if entry[:2] == (most, "read")]
    return [0, *(t + (t < len(log) and log[t][:2] == ("z", "write")) for t in ends)]


def elements(ax: Axes, name: str, shape: tuple, at: tuple, log: Sequence, now: slice) -> None:
    """One array: darker the more often used; what is read or written now; framed what stays."""
    counts, (left, top), (height, width) = np.zeros(shape), at, shape
    for array, _, place in log[: now.stop]:
        if array == name:
            counts.flat[place] += 1
    grid, look = (left + np.arange(width + 1), top + np.arange(height + 1)), {"ec": "silver"}
    ax.pcolormesh(*grid, np.minimum(counts, 3) + (counts > 0), cmap="Greys", vmin=0, vmax=9, **look)
    ax.text(left + width / 2, top - 0.2, name, ha="center", fontsize=9)
    used = {place: kind for array, kind, place in log[now] if array == name}
    if not used:  # it stays: what was used last, or of a result what will be written next
        near = log[now.stop :] if name == "z" else log[: now.start][::-1]
        used = {next(place for array, _, place in near if array == name): "stays"}
    for place, kind in used.items():
        y, x = np.unravel_index(place, shape)
        color = {"read": COLORS["vector"], "write": COLORS["device"], "stays": INK}[kind]
        look = {"fc": color, "ec": color, "lw": 2.5, "ls": "--" if kind == "stays" else "-"}
        corner = left + x + 0.1, top + y + 0.1
        ax.add_patch(plt.Rectangle(corner, 0.8, 0.8, fill=kind != "stays", **look))


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
    ["output stationary", "input stationary", "weight stationary", "weights in locals"],
    "How many multiply-adds are there for each store?",
    "One store for each multiply-add: the results stream past. What is the same in all of them?",
)
def whose_loop():
    """Every result is loaded and stored; %ymm1 stays, one number in all its lanes. Were it a pixel,
    the weights `u[j - q]` would run backwards; here both rows run forwards."""
    return "weight stationary"


@kinds.kernel(
    "conv_backward_weights",
    "How many bytes does a task pass over before it reads the first row of dz again?",
    "All taps of a filter's row use the same row of dz: let them take turns at each row.",
    by=threads.kernel,
)
@numba.njit(parallel=True, fastmath=True)
def fast_weights(x, dz, dw):
    """A row of dz serves K taps in turn; one tap a task returns to it after all the images."""
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
