"""The exercises of lesson 30, and a stepper through the requests of a warp."""

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, LAYERS, style

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
