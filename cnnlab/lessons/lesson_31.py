"""The exercises of lesson 31, and its pictures of shared memory."""

import matplotlib.pyplot as plt
import numpy as np

from cnnlab import cuda
from cnnlab.check import device, kinds
from cnnlab.check.verdict import Verdict
from cnnlab.measure.bench import layer_arguments
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import COLORS, INK, LAYERS, WRONG, figure

BANKS = LANES = 32


def _by_shuffles(traces: list) -> str:
    if any(trace.arrays[n].shared for trace in traces for n in set(trace.array) if n >= 0):
        return "shared memory is used; a shuffle needs none."
    few = max(len(set(trace.thread)) for trace in traces) < LANES
    few |= any(trace.gathered != 2**LANES - 1 for trace in traces)
    return "not every lane adds up a share and gets all others by shuffles." * few


def _in_tile(traces: list) -> str:
    rows = [row for trace in traces for row in trace.traffic().values()]
    tile, others = (sum(row["reads"] for row in rows if n in row) for n in ("turns", "sectors"))
    return f"a tile serves {tile:,} reads, global memory {others:,}." * (2 * tile < others)


def _one_warp(mine, dz, db):
    mine.launch("my_bias", (len(db),), (32,), dz, db, *dz.shape[:2], dz[0, 0].size)


@kinds.cuda_c(
    "conv_backward_bias",
    _one_warp,
    "In a round, lane i and lane i ^ by add each other's sum: by is 16, 8, 4, 2, 1.",
    "sum += __shfl_xor_sync(0xffffffff, sum, by), with by from 16 down to 1.",
    also=_by_shuffles,
)
def butterfly():
    """Each lane has the whole sum, so any of them may store it. All 32 must take part."""
    return """
extern "C" __global__ void my_bias(const float* dz, float* db, int N, int F, int size)
{
    int f = blockIdx.x;
    float sum = 0;
    for (int i = threadIdx.x; i < N * size; i += 32)
        sum += dz[(i / size * F + f) * size + i % size];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (threadIdx.x == 31) db[f] = sum;
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
    also=_in_tile,
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


@kinds.formula(
    lambda rng: {"pitch": int(rng.integers(12, 72))},
    "In which banks are the 32 words? A bank is a word's place in the tile, modulo 32.",
    "Thread (row, col) reads word row * pitch + col, but for a shift that all of them share.",
)
def tile_turns(pitch):
    """24 is the least with one turn: four rows of eight begin in banks 0, 24, 16 and 8."""
    banks = [(row * pitch + col) % 32 for row in range(4) for col in range(8)]
    return max(banks.count(bank) for bank in banks)


@kinds.labels(
    ["sound", "wrong sum", "out of bounds", "race", "bank conflict"],
    ["how many maps?", "which pixels?", "how many shares?", "which words?", "how many threads?"],
    "Count: 6 maps, 10 blocks, 256 threads. What would be right?",
    "One of the five is sound: where a warp wants a single word, it is handed to all at once.",
)
def fp_f():
    """Ten blocks, six maps; `weight[bx]` is an output's; all add 216; one word; 256 store it."""
    return ["out of bounds", "wrong sum", "wrong sum", "sound", "race"]


def _with_halo(mine, dz, w, dx):
    (n, c, h, wide), f, k = dx.shape, len(w), w.shape[2]
    grid, shared = (-(-wide // 8), -(-h // 8), n * c), 4 * (8 + k - 1) ** 2
    mine.launch("my_backward_input", grid, (8, 8), dz, w, dx, *dx.shape, f, k, shared=shared)


@kinds.cuda_c(
    "conv_backward_input",
    _with_halo,
    "64 threads fill edge × edge elements: a loop from a thread's number, in steps of 64.",
    "Element i is in row blockIdx.y * 8 − (K − 1) + i / edge of dz, if there is one; else it is 0.",
    strides=False,
    also=_in_tile,
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


def _few_loads(operation: str, function) -> Verdict:
    """The verdict on a kernel, and on its loads for one image of the report's network."""
    if not (verdict := device.kernel(operation, function)):
        return verdict
    with cuda.traced() as traces:
        function(*layer_arguments(operation, 1)[0])
    loads = sum(trace.loads() for trace in traces) / 86_400
    return Verdict(loads <= 0.5, f"{operation}: {loads:.2f} loads a multiply-add, at most 0.5")


@kinds.kernel(
    "conv_forward",
    "Let a thread keep the results of several filters for several neighbours of a row.",
    "R filters by T neighbours: R + T loads serve R · T multiply-adds.",
    by=_few_loads,
)
def challenge_registers(x, w, b, z, stride=1):
    """Ten loads serve 24 multiply-adds: 0.42, and 0.04 for the bias."""
    kernels = cuda.Kernels("""
extern "C" __global__ void blocked(const float* x, const float* w, const float* b, float* z,
                                   int N, int C, int H, int W, int F, int K, int S)
{
    int P = (H - K) / S + 1, Q = (W - K) / S + 1, groups = (F + 5) / 6, strips = (Q + 3) / 4;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * groups * P * strips) return;
    int q = i % strips * 4, p = i / strips % P, group = i / (strips * P);
    int first = group % groups * 6, n = group / groups;
    float sum[6][4] = {}, pixel[4];
    for (int t = 0; t < C * K * K; t++) {
        const float* row = x + ((n * C + t / (K * K)) * H + p * S + t / K % K) * W + t % K;
        for (int j = 0; j < 4; j++) pixel[j] = row[min(q + j, Q - 1) * S];
        for (int r = 0; r < 6; r++) {
            float weight = w[min(first + r, F - 1) * C * K * K + t];
            for (int j = 0; j < 4; j++) sum[r][j] += weight * pixel[j];
        }
    }
    for (int r = 0; r < 6 && first + r < F; r++)
        for (int j = 0; j < 4 && q + j < Q; j++)
            z[((n * F + first + r) * P + p) * Q + q + j] = sum[r][j] + b[first + r];
}
""")
    (n, f, p, q), sizes = z.shape, (*x.shape, *w.shape[::3], stride)
    kernels.over("blocked", n * -(-f // 6) * p * -(-q // 4), x, w, b, z, *sizes)


def rounds(trace, array: str) -> Stepper:
    """Step through one warp's tree in shared memory, from its trace, and one by shuffles."""
    mine = trace.array == [each.name for each in trace.arrays].index(array)
    frames, captions, tree = [], [], np.ones(LANES, int)
    for k in range(trace.barriers.max() + 1):
        here = mine & (trace.barriers == k) & (trace.flags == 0) & (trace.index != trace.thread)
        pairs = dict(zip(trace.thread[here], trace.index[here], strict=True))
        tree[list(pairs)] += tree[list(pairs.values())]
        ax = frame((7.2, 1.9))
        ax.set(xlim=(-3.5, LANES), ylim=(-0.1, 3.8))
        ax.axis("off")
        for y, name in ((2, "tree"), (0, "shuffles")):
            ax.text(-0.3, y + 0.5, name, ha="right", va="center", fontsize=9, color=INK)
            for i in range(LANES):
                used = i in pairs or not k if y else i < LANES >> k
                ax.add_patch(plt.Rectangle((i, y), 0.92, 1, color=LAYERS[2] if used else "#eeeeee"))
                text = tree[i] if y else 2**k if used else ""
                ax.text(i + 0.46, y + 0.5, text, ha="center", va="center", fontsize=7)
        for to, source in pairs.items():
            look = {"arrowstyle": "->", "color": COLORS["device"], "lw": 0.8, "shrinkA": 0}
            look["connectionstyle"] = f"arc3,rad={3 / (8 + source - to)}"
            ax.annotate("", (to + 0.46, 3), (source + 0.46, 3), arrowprops=look)
        count = int((mine & (trace.barriers <= k)).sum())
        what = f"Round {k}: in the tree {len(pairs)} of 32 threads add" if k else "Each stores"
        captions.append(f"{what} a partial sum. Shared accesses so far: {count}; by shuffles none.")
        frames.append(ax.figure)
    return stepper(frames, title="Partial sums, from 32 to 1", captions=captions)


@figure
def banks(trace, array: str, *, write: bool = False) -> plt.Axes:
    """Draw the banks of the first request for an array of 4-byte words that takes the most turns.

    A column is a bank, a row a turn; a square is a word, with the number of a lane that wants it.
    """
    requests, turns = trace.requests(array, write), trace.conflicts(array, write)
    rows = requests[int(turns.argmax())]
    words, first = np.unique(trace.index[rows], return_index=True)
    _, ax = plt.subplots(figsize=(9, 1.3 + 0.32 * int(turns.max())))
    height = np.ones(BANKS, int)
    for bank, lane in zip(words % BANKS, trace.thread[rows[first]] % LANES, strict=True):
        look = {"color": WRONG if height[bank] > 1 else COLORS["vector"], "alpha": 0.35}
        ax.add_patch(plt.Rectangle((bank - 0.45, height[bank] - 0.42), 0.9, 0.84, **look))
        ax.text(bank, height[bank], lane, ha="center", va="center", fontsize=7, color=INK)
        height[bank] += 1
    ax.set(xlim=(-0.6, BANKS - 0.4), ylim=(height.max() - 0.5, 0.5), yticks=range(1, height.max()))
    ax.set(xlabel="bank; the number is a lane", ylabel="turn", xticks=range(0, BANKS, 4))
    ax.grid(visible=False)
    return ax
