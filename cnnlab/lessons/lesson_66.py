"""The exercises of lesson 66, its drawings, and OpenCL devices in processes of their own."""

import functools
import multiprocessing
import operator
import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab import cuda
from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import COLORS, INK, LAYERS, figure

try:
    import pyopencl as cl
except ImportError:  # an extra: pip install 'cnnlab[opencl]'
    cl = None

HUES = COLORS["vector"], COLORS["device"]  # of two devices, or of two kernels


def load_ipython_extension(ipython) -> None:
    """Register the cell magic: `%%opencl mine` keeps its cell's OpenCL C as the text `mine`."""

    class Text(str):
        """OpenCL C, launched as the CUDA C that the notebook's `to_cuda` makes of it."""

        def launch(self, *arguments) -> None:
            cuda.Kernels(ipython.user_ns["to_cuda"](self)).launch(*arguments)

    def opencl(line: str, cell: str) -> None:
        ipython.user_ns[line.strip()] = Text("\n" + cell)  # so that line numbers are the cell's

    cuda.load_ipython_extension(ipython)  # for whom the emulator cannot compile
    ipython.register_magic_function(opencl, "cell")


def devices() -> list:
    """The OpenCL devices of this machine; PoCL's, which are its cores, with one thread."""
    os.environ.setdefault("POCL_MAX_PTHREAD_COUNT", "1")
    try:
        platforms = cl.get_platforms() if cl else []
    except cl.LogicError:  # no driver
        return []
    return [device for platform in platforms for device in platform.get_devices()]


def serve(connection, core: int, source: str, block: tuple[int, int], shared, sizes) -> None:
    """Be an OpenCL device, on one core, and compute rows of c (m, n) = a b as long as some come."""
    os.sched_setaffinity(0, {core})
    (rows, cols), (m, n), context = block, sizes, cl.Context(devices()[:1])
    commands, macros = cl.CommandQueue(context), [f"-DROWS={rows}", f"-DCOLS={cols}", "-DNEXT=1"]
    kernel = cl.Kernel(cl.Program(context, source).build(macros), "gemm")
    c, flags = np.frombuffer(shared, "f4").reshape(m, n), cl.mem_flags.COPY_HOST_PTR
    arrays = *operands(m, n), np.zeros(n, np.float32), c
    buffers = [cl.Buffer(context, flags, hostbuf=array) for array in arrays]  # may be written, too
    kernel.set_args(*buffers, *map(np.int32, (m, n, n, 0)))
    connection.send("ready")
    while True:
        first, last = connection.recv()
        begin, n_items = time.perf_counter(), (n // cols, (last - first) // rows, 1)
        cl.enqueue_nd_range_kernel(commands, kernel, n_items, (32, 1, 1), (0, first // rows, 0))
        cl.enqueue_copy(commands, c[first:last], buffers[3], src_offset=4 * first * n)  # waits
        connection.send((begin, time.perf_counter(), first, last))


def operands(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The same a (m, n) and b (n, n) in every process."""
    rng = np.random.default_rng(0)
    return rng.random((m, n), np.float32), rng.random((n, n), np.float32)


@functools.cache
def processes(source: str, blocks: tuple, m: int, n: int) -> tuple[list, np.ndarray, np.ndarray]:
    """A connection to a process for each of the `blocks`, the product of all, and NumPy's."""
    context, connections = multiprocessing.get_context("spawn"), []
    shared = context.RawArray("f", m * n)
    for core, block in enumerate(blocks):
        ours, theirs = context.Pipe()
        given = theirs, core, source, block, shared, (m, n)
        context.Process(target=serve, args=given, daemon=True).start()
        ours.recv()
        connections.append(ours)
    return connections, np.frombuffer(shared, np.float32).reshape(m, n), np.matmul(*operands(m, n))


@figure
def rates(table: Mapping[str, Sequence[float]], top: float) -> Axes:
    """Draw GFLOP/s of blocks: neighbouring columns, and every 32nd; `top` is the peak of a core."""
    _, ax = plt.subplots(figsize=(7.2, 3.2))
    for k, (label, color) in enumerate(zip(("neighbours", "every 32nd"), HUES, strict=True)):
        at = np.arange(len(table)) + (k - 0.5) * 0.38
        bars = ax.bar(at, [pair[k] for pair in table.values()], 0.36, color=color, label=label)
        ax.bar_label(bars, fmt="{:.3g}", fontsize=8)
    ax.axhline(top, color=INK, ls="--", lw=1, label="peak of a core")
    ax.set_xticks(range(len(table)), list(table))
    ax.set(xlabel="results of a work item: rows × columns", ylabel="GFLOP/s")
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0, 0.92))
    return ax


@figure
def lanes(plans: Mapping[str, Sequence]) -> Sequence[Axes]:
    """Draw what each device does until the barrier, a panel for each plan."""
    _, axes = plt.subplots(len(plans), 1, figsize=(7.2, 0.7 + 0.8 * len(plans)), sharex=True)
    for ax, (name, devices) in zip(axes, plans.items(), strict=True):
        for k, device in enumerate(devices):
            spans = [(1e3 * begin, 1e3 * (end - begin)) for begin, end, *_ in device.blocks]
            ax.broken_barh(spans, (-k - 0.4, 0.8), color=HUES[k], ec="white", lw=0.7)
        ax.axvline(1e3 * max(device.blocks[-1][1] for device in devices), color=INK, lw=1.5)
        ax.set_yticks((0, -1), ("fast", "slow"))
        ax.set_title(name, loc="left", fontsize=10)
    axes[-1].set_xlabel("ms; the black line is the barrier")
    return axes


@figure
def times(parts: Mapping, blocks: Mapping, share: float, alone: float) -> Sequence[Axes]:
    """Draw ms over the fast device's share, and over rows of a queue's block: (model, measured)."""
    _, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
    for ax, table in ((left, parts), (right, blocks)):
        models, measured = zip(*table.values(), strict=True)
        ax.plot(list(table), models, color=INK, label="predicted")
        ax.plot(list(table), measured, "o", color=HUES[0], label="measured")
        ax.axhline(alone, color=HUES[1], ls="--", lw=1, label="the fast device alone")
    left.axvline(share, color="grey", ls=":", label="its share by speed")
    left.set(xlabel="share of the fast device", ylabel="ms until the barrier")
    right.set(xscale="log", xlabel="rows of a block in the queue", ylim=(0, None))
    right.set_xticks(list(blocks), list(map(str, blocks)))
    right.set_xticks([], minor=True)
    left.legend(frameon=False, fontsize=9)
    return left, right


def in_flight(sent: Sequence[Mapping[str, int]], rows: Mapping[str, tuple[int, int]]) -> Stepper:
    """Step through an image in pipes: rows that stages `sent`, of how many, and the next holds."""
    frames, captions = [], []
    for counts in sent:
        axes = frame((4.4, 2.4), 1, len(rows))
        for ax, (name, (total, held)), n in zip(axes, rows.items(), counts.values(), strict=True):
            colors = [LAYERS[2]] * max(0, n - held) + [HUES[0]] * min(n, held)
            ax.barh(range(total), 1, 0.8, color=[*colors, *["white"] * (total - n)], ec=INK, lw=0.4)
            ax.set(xlim=(-0.01, 1.02), ylim=(total - 0.4, -0.6), title=f"{name}: {n}")
            ax.axis("off")
        frames.append(axes[0].figure)
        captions.append(", ".join(f"{counts[name]} of {n} {name}" for name, (n, _) in rows.items()))
    return stepper(frames, title="Rows passed (pale), kept (dark), to come", captions=captions)


@kinds.labels(
    ["address space", "barrier", "buffer", "NDRange", "reserved word"],
    [
        "what do a thousand and 64 have in common?",
        "what does the host know of the place where it lies?",
        "what else is part of a pointer's type?",
        "what is this name in OpenCL C?",
        "for what does the second device wait?",
    ],
    "Which word of the table, or of the text below it, is concerned?",
)
def diagnosis():
    """64 doesn't divide 1000; the handle of a buffer is no pointer; in 1.2 a pointer without a word
    is to private memory; `half` is a type; and a product needs one barrier, at its end."""
    return ["NDRange", "buffer", "address space", "reserved word", "barrier"]


def translated(model: Callable[[], str]) -> Callable[[], str]:
    """A model answer in OpenCL C, which returns CUDA C: its few words."""
    words = {"__kernel": 'extern "C" __global__', "__global ": "", "__local": "__shared__"}
    words |= {"barrier(CLK_LOCAL_MEM_FENCE)": "__syncthreads()", "(0)": ".x", "(1)": ".y"}
    words |= {"get_local_id": "threadIdx", "get_group_id": "blockIdx"}
    cuda_c = functools.reduce(lambda text, pair: text.replace(*pair), words.items(), model())
    return functools.wraps(model)(lambda: cuda_c)


def _launch(kernels, x, w, b, z) -> None:
    grid = -(-z.shape[1] // 16), -(-len(x) // 16)
    kernels.launch("my_dense", grid, (16, 16), x, w, b, z, *x.shape, len(w))


@kinds.cuda_c(
    "dense_forward",
    _launch,
    "Item (col, row) brings element (row, first + col) of both tiles; zeros where there is none.",
    "Two barriers: one before the tiles are read, one before they are filled again.",
)
@translated
def tiles():
    """Sixteen items use each number that comes from global memory; a tile costs two barriers."""
    return r"""
__kernel void my_dense(__global const float* x, __global const float* w, __global const float* b,
                       __global float* z, int N, int D, int O)
{
    __local float images[16][17], weights[16][17];
    int col = get_local_id(0), row = get_local_id(1);
    int n = get_group_id(1) * 16 + row, o = get_group_id(0) * 16 + col;
    int other = get_group_id(0) * 16 + row;
    float sum = 0;
    for (int first = 0; first < D; first += 16) {
        int d = first + col;
        images[row][col] = n < N && d < D ? x[n * D + d] : 0;
        weights[row][col] = other < O && d < D ? w[other * D + d] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < 16; i++) sum += images[row][i] * weights[col][i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (n < N && o < O) z[n * O + o] = sum + b[o];
}
"""


def _as_guided(plan) -> str:
    for n, n_devices in ((1024, 2), (4096, 3), (20, 2)):
        rows, left = [], n
        free = SimpleNamespace(start=lambda *block, rows=rows: rows.append(block))
        busy = SimpleNamespace(start=lambda *block, rows=rows: rows.append("a busy device"))
        plan([busy] * (n_devices - 1) + [free], n, operator.itemgetter(-1))
        for block in rows:
            size = min(left, max(8, left // (2 * n_devices)))
            if block != (n - left, n - left + size):
                wanted = f"rows {n - left} to {n - left + size}"
                return f"{left} rows left, {n_devices} devices: expected {wanted}, got {block}"
            left -= size
        if left:
            return f"the last {left} of {n} rows were not started"
    return ""


@kinds.tested(
    _as_guided,
    "How many rows are left before each block? A device gets half of its equal share of these.",
    "No block has fewer than 8 rows but the last, which has what is left.",
)
def challenge_guided(devices, n, first_free):
    """Large blocks first save starts, small ones last save waiting, but cost a start each. By the
    model, of the sizes tried, 128, 256 and 512 beat it for 2,048 rows, and none for 16,384."""
    first = 0
    while first < n:
        rows = max(8, (n - first) // (2 * len(devices)))
        last = min(n, first + rows)
        first_free(devices).start(first, last)
        first = last
