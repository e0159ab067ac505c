"""The exercises of lesson 30, and a stepper through the requests of a warp."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, INK, LAYERS, figure, style

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
    colors = ListedColormap(["white", LAYERS[2], COLORS["vector"]])
    total, frames, captions = dict.fromkeys(traces, 0), [], []
    for k in range(min(map(len, requests.values()))):
        counts = []
        with style():
            page = Figure((4.4, 1.7))
            for ax, name in zip(page.subplots(1, len(traces)), traces, strict=True):
                sectors, shade = np.unique(requests[name][k] // SECTOR), np.zeros(rows * columns)
                shade.reshape(-1, SECTOR)[sectors] = 1
                shade[requests[name][k]] = 2
                ax.pcolormesh(shade.reshape(shape), cmap=colors, vmin=0, vmax=2, ec="#dddddd")
                ax.set(title=name, xlabel="column", ylabel="row", aspect="equal")
                ax.invert_yaxis()
                total[name] += len(sectors)
                counts.append(f"{name}: {len(sectors)} sectors, {total[name]} in all")
        frames.append(page)
        captions.append(f"Request {k + 1}. {'; '.join(counts)}.")
    return stepper(frames, title=f"What 32 threads read of {array}, tap by tap", captions=captions)


@kinds.number(
    "A thread for each pixel: how many pixels are there, and how many threads has a block?",
    "64 · 28 · 28 pixels. Divide by 256, and round up.",
)
def blocks():
    """This time nothing is left over."""
    return 64 * 28 * 28 / 256


@kinds.number(
    "Which bytes does the warp touch, from the first to the last? A sector is moved whole.",
    "Thread 31 reads element 62. From element 0 to element 62 is nearly 256 bytes.",
)
def sectors():
    """Half of the 256 bytes that are moved nobody wants."""
    return 256 / 32


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


# --- the requests of a warp -----------------------------------------------------------------------


@figure
def warp_requests(traces: Mapping[str, object], array: str, *, requests: int = 3) -> np.ndarray:
    """Draw the first requests of a warp for an array, with a panel for each trace.

    A row is one access in the source by 32 threads together, from the first thread (dark) to the
    last (light). A box is a sector of 32 bytes, grey if the request moves it; the number below is
    its first element. Sectors that no request touches are left out.
    """
    _, axes = plt.subplots(
        len(traces),
        1,
        figsize=(9, 0.5 + (0.75 + 0.3 * requests) * len(traces)),
        squeeze=False,
    )
    for ax, (name, trace) in zip(axes[:, 0], traces.items(), strict=True):
        per = 32 // next(a.item for a in trace.arrays if a.name == array)
        rows = [trace.index[r] for r in trace.requests(array)[:requests]]
        sectors = np.unique(np.concatenate(rows) // per)
        for row, places in enumerate(rows):
            slots = np.searchsorted(sectors, places // per)
            for slot in range(len(sectors)):
                moved = slot in slots
                color = to_rgba(GREY, 0.3) if moved else "none"
                look = {"facecolor": color, "edgecolor": INK, "linewidth": 0.4}
                ax.add_patch(plt.Rectangle((slot, row - 0.4), 1, 0.8, **look))
            shades = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(places)))
            within = (places % per + 0.5) / per
            ax.scatter(slots + within, np.full(len(places), row), c=shades, s=10, marker="s")
        ax.set(ylim=(len(rows) - 0.5, -0.5), yticks=range(len(rows)), ylabel="request")
        ax.set_xticks(range(len(sectors)), sectors * per, fontsize=7)
        ax.tick_params(axis="x", labelbottom=True, length=0)
        ax.grid(visible=False)
        mean = np.mean([len(np.unique(places // per)) for places in rows])
        ax.set_title(
            f"{name}: {mean:.3g} {'sector' if mean == 1 else 'sectors'} a request", fontsize=10
        )
    widest = max(ax.dataLim.x1 for ax in axes[:, 0])
    for ax in axes[:, 0]:
        ax.set_xlim(0, np.ceil(widest))
    axes[-1, 0].set_xlabel(f"place in {array} at which a sector begins")
    return axes[:, 0]
