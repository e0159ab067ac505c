"""The exercises of lesson 31."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.plots.style import COLORS, INK, WRONG, figure

BANKS = 32


@kinds.number(
    "Each round halves the number of shares.",
    "Which power of two is 1,024?",
)
def rounds():
    """Each round halves the shares, and 2 to the 10th is 1,024."""
    return 10


@kinds.number(
    "How long is the edge of the tile, with its halo?",
    "16 + 5 − 1 pixels along each side, for 16 · 16 results.",
)
def pixels():
    """At 8 × 8 results it was 2.25: the larger the tile, the thinner its halo."""
    return 20 * 20 / (16 * 16)


def _no_shared(traces: list) -> str:
    result = any(trace.arrays[n].shared for trace in traces for n in set(trace.array) if n >= 0)
    return "shared memory is used; a shuffle needs none." if result else ""


@kinds.cuda_c(
    "conv_backward_bias",
    lambda mine, dz, db: mine.launch(
        "my_bias", (len(db),), (32,), dz, db, *dz.shape[:2], dz[0, 0].size
    ),
    "In each round every thread adds what the thread 16, 8, 4, 2, 1 further on has.",
    "sum += __shfl_down_sync(0xffffffff, sum, by), with by from 16 down to 1.",
    also=_no_shared,
)
def shuffle():
    """Only the first thread has the whole sum in the end. All 32 must take part in each shuffle."""
    return """
extern "C" __global__ void my_bias(const float* dz, float* db, int N, int F, int size)
{
    int f = blockIdx.x;
    float sum = 0;
    for (int i = threadIdx.x; i < N * size; i += 32)
        sum += dz[(i / size * F + f) * size + i % size];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);
    if (threadIdx.x == 0) db[f] = sum;
}
"""


def _in_tiles(mine, x, w, b, z):
    (n, o), d = z.shape, x.shape[1]
    mine.launch("my_forward", (-(-o // 16), -(-n // 16)), (16, 16), x, w, b, z, n, d, o)


@kinds.cuda_c(
    "dense_forward",
    _in_tiles,
    "Two lines race for one element. Which of them belongs to the next round of the loop?",
    "A fast thread fills the next tile while a slow one still multiplies. Who must wait for whom?",
)
def race():
    """One barrier before the tile is read, and one before it is overwritten."""
    return """
extern "C" __global__ void my_forward(const float* x, const float* w, const float* b, float* z,
                                      int N, int D, int O)
{
    __shared__ float images[16][17], weights[16][17];
    int col = threadIdx.x, row = threadIdx.y;
    int n = blockIdx.y * 16 + row, o = blockIdx.x * 16 + col;
    float sum = 0;
    for (int first = 0; first < D; first += 16) {
        int d = first + col, other = blockIdx.x * 16 + row;
        images[row][col] = n < N && d < D ? x[n * D + d] : 0.0f;
        weights[row][col] = other < O && d < D ? w[other * D + d] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += images[row][i] * weights[col][i];
        __syncthreads();
    }
    if (n < N && o < O) z[n * O + o] = sum + b[o];
}
"""


def _padded(mine, x, w, b, z):
    (n, f, p, q), k = z.shape, w.shape[2]
    grid, edge = (-(-q // 8), -(-p // 8), n * f), 8 + k - 1
    shared = 4 * edge * (edge + 32)
    mine.launch("my_forward", grid, (8, 8), x, w, b, z, *x.shape, f, k, shared=shared)


def _one_turn(traces: list) -> str:
    most = max(int(trace.conflicts("tile", write=False).max(initial=0)) for trace in traces)
    if not most:
        return "no thread reads the tile."
    return f"a request for the tile takes {most} turns." if most > 1 else ""


@kinds.cuda_c(
    "conv_forward",
    _padded,
    "A warp reads 8 neighbours in each of 4 rows. In which banks do the 4 rows begin?",
    "8 banks for each row, and 32 in all: let the rows begin 8 or 24 banks apart, modulo 32.",
    strides=False,
    also=_one_turn,
)
def padding():
    """Rows that lie 24 words apart begin in banks 0, 24, 16 and 8: four times eight words."""
    return """
extern "C" __global__ void my_forward(const float* x, const float* w, const float* b, float* z,
                                      int N, int C, int H, int W, int F, int K)
{
    extern __shared__ float tile[];
    int P = H - K + 1, Q = W - K + 1, edge = 8 + K - 1;
    int pitch = 24;
    int f = blockIdx.z % F, n = blockIdx.z / F, number = threadIdx.y * 8 + threadIdx.x;
    int p = blockIdx.y * 8 + threadIdx.y, q = blockIdx.x * 8 + threadIdx.x;
    float sum = b[f];
    for (int c = 0; c < C; c++) {
        for (int i = number; i < edge * edge; i += 64) {
            int row = blockIdx.y * 8 + i / edge, col = blockIdx.x * 8 + i % edge;
            float pixel = row < H && col < W ? x[((n * C + c) * H + row) * W + col] : 0.0f;
            tile[i / edge * pitch + i % edge] = pixel;
        }
        __syncthreads();
        for (int k = 0; k < K; k++)
            for (int l = 0; l < K; l++)
                sum += w[((f * C + c) * K + k) * K + l]
                       * tile[(threadIdx.y + k) * pitch + threadIdx.x + l];
        __syncthreads();
    }
    if (p < P && q < Q) z[((n * F + f) * P + p) * Q + q] = sum;
}
"""


def _with_halo(mine, dz, w, dx):
    (n, c, h, wide), f, k = dx.shape, len(w), w.shape[2]
    grid, edge = (-(-wide // 8), -(-h // 8), n * c), 8 + k - 1
    mine.launch(
        "my_backward_input", grid, (8, 8), dz, w, dx, *dx.shape, f, k, shared=4 * edge * edge
    )


@kinds.cuda_c(
    "conv_backward_input",
    _with_halo,
    "64 threads fill edge × edge elements: a loop from a thread's number, in steps of 64.",
    "Element i of the tile is in row blockIdx.y * 8 − (K − 1) + i / edge of dz, and in a column "
    "alike; where there is no such row or column, it is 0.",
    strides=False,
)
def halo():
    """This halo lies above and to the left: dx[i, j] collects from dz[i − k, j − l]."""
    return """
extern "C" __global__ void my_backward_input(const float* dz, const float* w, float* dx,
                                             int N, int C, int H, int W, int F, int K)
{
    extern __shared__ float tile[];
    int P = H - K + 1, Q = W - K + 1, edge = 8 + K - 1;
    int c = blockIdx.z % C, n = blockIdx.z / C, number = threadIdx.y * 8 + threadIdx.x;
    int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 8 + threadIdx.x;
    float sum = 0;
    for (int f = 0; f < F; f++) {
        const float* map = dz + (n * F + f) * P * Q;
        for (int i = number; i < edge * edge; i += 64) {
            int p = blockIdx.y * 8 - (K - 1) + i / edge, q = blockIdx.x * 8 - (K - 1) + i % edge;
            tile[i] = p >= 0 && p < P && q >= 0 && q < Q ? map[p * Q + q] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < K; k++)
            for (int l = 0; l < K; l++)
                sum += w[((f * C + c) * K + k) * K + l]
                       * tile[(threadIdx.y + K - 1 - k) * edge + threadIdx.x + K - 1 - l];
        __syncthreads();
    }
    if (row < H && col < W) dx[((n * C + c) * H + row) * W + col] = sum;
}
"""


# --- shared arrays: what lies between barriers, and in which bank ---------------------------------


@figure
def shared_steps(traces: Mapping[str, object], array: str, *, block: int = 0) -> np.ndarray:
    """Draw a block's accesses to a shared array from barrier to barrier, a panel for each trace.

    Between two barriers, a dot is an element that was read, a ring one that was written.
    """
    shape = 1, len(traces)
    steps = max(int(trace.barriers.max()) + 1 for trace in traces.values())
    size = (9, 1.2 + 0.28 * steps)
    _, axes = plt.subplots(*shape, figsize=size, squeeze=False, sharey=True)
    for ax, (name, trace) in zip(axes[0], traces.items(), strict=True):
        number = next(i for i, a in enumerate(trace.arrays) if a.name == array)
        mine = (trace.array == number) & (trace.block == block)
        for write, look in (
            (False, {"color": COLORS["vector"], "s": 8, "label": "read"}),
            (
                True,
                {"facecolors": "none", "edgecolors": COLORS["device"], "s": 26, "label": "written"},
            ),
        ):
            rows = mine & ((trace.flags & 1 > 0) == write)
            ax.scatter(trace.index[rows], trace.barriers[rows], linewidth=0.8, **look)
        ax.set_title(name, fontsize=10)
        ax.set(xlabel=f"place in {array}", yticks=range(steps), ylim=(steps - 0.5, -0.5))
    axes[0, 0].set_ylabel("barriers passed")
    axes[0, -1].legend(loc="lower right", fontsize=8)
    return axes[0]


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
