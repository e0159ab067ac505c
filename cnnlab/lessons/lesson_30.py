"""Lesson 30, the grid: drawings, a stepper through the requests of a warp, and the exercises."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, LAYERS, colors, figure, style

SECTOR = 8  # float32 in its 32 bytes


def steps(traces: Mapping[str, object], array: str, shape: tuple[int, int]) -> Stepper:
    """A stepper through the first warp's requests for an image, a panel for each trace.

    `shape` is the image's rows and columns. Pixels that are read are dark, the rest of the sectors
    that are moved for them light. The counter is that of sectors.
    """
    rows, columns = shape
    requests = {
        name: [
            trace.index[r]
            for r in sorted(trace.requests(array), key=min)  # as they were made
            if trace.block[r[0]] == 0 and trace.thread[r[0]] < 32
        ]
        for name, trace in traces.items()
    }
    shades = ListedColormap(["white", LAYERS[2], COLORS["vector"]])
    total, frames, captions = dict.fromkeys(traces, 0), [], []
    for k in range(min(map(len, requests.values()))):
        counts = []
        with style():
            page = Figure((4.4, 1.7))
            for ax, name in zip(page.subplots(1, len(traces)), traces, strict=True):
                sectors, shade = np.unique(requests[name][k] // SECTOR), np.zeros(rows * columns)
                shade.reshape(-1, SECTOR)[sectors] = 1
                shade[requests[name][k]] = 2
                ax.pcolormesh(shade.reshape(shape), cmap=shades, vmin=0, vmax=2, ec="#dddddd")
                ax.set(title=name, xlabel="column", ylabel="row", aspect="equal")
                ax.invert_yaxis()
                total[name] += len(sectors)
                counts.append(f"{name}: {len(sectors)} sectors, {total[name]} in all")
        frames.append(page)
        captions.append(f"Request {k + 1}. {'; '.join(counts)}.")
    return stepper(frames, title=f"What 32 threads read of {array}, tap by tap", captions=captions)


@figure
def utilisation(n_warps: Sequence[int], shares: Mapping[int, Sequence[float]]) -> Axes:
    """Draw the share of cycles in which a scheduler issues, over its warps, by loads in flight."""
    _, ax = plt.subplots(figsize=(7, 3.2))
    for color, (loads, row) in zip(colors([str(n) for n in shares]), shares.items(), strict=True):
        name = f"{loads} {'load' if loads == 1 else 'loads'} before it waits"
        ax.plot(n_warps, 100 * np.array(row), "o-", color=color, label=name)
    ax.set(xlabel="warps of a scheduler", ylabel="cycles that issue, %", ylim=(0, 105))
    ax.set_xticks(n_warps)
    ax.legend(frameon=False, loc="lower right")
    return ax


@figure
def by_cache(sizes: Sequence[int], curves: Mapping[str, Sequence[int]]) -> Axes:
    """Draw the kB that a cache moves over its size in bytes; the size 0 stands at the left."""
    _, ax = plt.subplots(figsize=(7.5, 3.6))
    places = np.arange(len(sizes))
    for color, (name, row) in zip(colors(list(curves)), curves.items(), strict=True):
        ax.plot(places, np.array(row) / 1e3, "o-", color=color, label=name)
    labels = ["none", *(f"{n} B" if n < 1024 else f"{n >> 10} KiB" for n in sizes[1:])]
    ax.set(yscale="log", xlabel="size of the cache", ylabel="kB moved")
    ax.set_xticks(places, labels, fontsize=9)
    ax.minorticks_off()
    ax.set_yticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
    ax.legend(frameon=False)
    return ax


# --- the exercises --------------------------------------------------------------------------------


@kinds.cuda_c(
    "sigmoid_backward",
    lambda mine, y, dy, dz: mine.over("my_sigmoid_backward", y.size, y, dy, dz, y.size),
    "The trace names a line, a thread and an element. Has that thread an element at all?",
    "Threads come in whole blocks of 256. Let those from number size on do nothing.",
)
def guard():
    """The threads of the last block that have no element return at once, or skip the line."""
    return """
extern "C" __global__ void my_sigmoid_backward(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);
}
"""


def _four_blocks(mine, y, dy, dz):
    mine.launch("my_strided", (4,), (64,), y, dy, dz, y.size)


@kinds.cuda_c(
    "sigmoid_backward",
    _four_blocks,
    "The grid has gridDim.x * blockDim.x threads. Which elements are left for thread i?",
    "for (int i = …; i < size; i += gridDim.x * blockDim.x): the condition is the guard, too.",
)
def grid_stride():
    """Neighbours stay neighbours in every round, so each request is as coalesced as before."""
    return """
extern "C" __global__ void my_strided(const float* y, const float* dy, float* dz, int size)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
        dz[i] = dy[i] * y[i] * (1.0f - y[i]);
}
"""


def _by_16(mine, x, dz, dw):
    (n, d), o = x.shape, dz.shape[1]
    grid = -(-d // 16), -(-o // 16)
    mine.launch("my_backward_weights", grid, (16, 16), x, dz, dw, n, d, o)


@kinds.cuda_c(
    "dense_backward_weights",
    _by_16,
    "Along x the blocks cover the D columns of dw, along y its O rows. Both may end inside one.",
    "d = blockIdx.x * 16 + threadIdx.x, o = blockIdx.y * 16 + threadIdx.y; and guard both.",
)
def two_indices():
    """Neighbours along x have neighbours in memory, since d is the last index of x and dw."""
    return """
extern "C" __global__ void my_backward_weights(const float* x, const float* dz, float* dw,
                                               int N, int D, int O)
{
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    int o = blockIdx.y * blockDim.y + threadIdx.y;
    if (d >= D || o >= O) return;
    float sum = 0;
    for (int n = 0; n < N; n++) sum += x[n * D + d] * dz[n * O + o];
    dw[o * D + d] = sum;
}
"""


@kinds.choice(
    ["x[lane / 2]", "x[31 - lane]", "x[lane + 1]", "x[2 * lane]"],
    "Which elements does each access want? Their order within the warp does not matter.",
    "Four sectors are 32 numbers: every one of them is wanted by some lane.",
)
def access():
    """Elements 0 to 31 lie in 4 sectors; which lane wants which of them makes no difference."""
    return "x[31 - lane]"
