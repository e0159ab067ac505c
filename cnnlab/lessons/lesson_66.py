"""The exercises of lesson 66, its drawings, and what it needs of OpenCL."""

import contextlib
import functools
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait as any_of
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.kernels import KERNELS, composition
from cnnlab.measure import machine
from cnnlab.network import Parameters
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, INK, LAYERS, figure, style

try:
    import pyopencl as cl
except ImportError:  # an extra: pip install 'cnnlab[opencl]'
    cl = None

# What a forward pass needs besides the lesson's kernels: an item for each result.
REST = r"""
__kernel void pool_forward(__global const float* x, __global const float* w,
                           __global const float* b, __global float* z,
                           int C, int H, int W, int K, int S, int P, int Q)
{
    int i = get_global_id(0), q = i % Q, p = i / Q % P, map = i / (Q * P), c = map % C;
    float sum = b[c];
    for (int k = 0; k < K; k++)
        for (int l = 0; l < K; l++)
            sum += w[(c * K + k) * K + l] * x[(map * H + p * S + k) * W + q * S + l];
    z[i] = sum;
}

__kernel void max_pool_forward(__global const float* x, __global float* z,
                               int H, int W, int S, int P, int Q)
{
    int i = get_global_id(0), q = i % Q, p = i / Q % P, map = i / (Q * P);
    float most = x[(map * H + p * S) * W + q * S];
    for (int k = 0; k < S; k++)
        for (int l = 0; l < S; l++) most = fmax(most, x[(map * H + p * S + k) * W + q * S + l]);
    z[i] = most;
}

__kernel void sigmoid(__global const float* z, __global float* y)
{
    y[get_global_id(0)] = 1 / (1 + exp(-z[get_global_id(0)]));
}

__kernel void relu(__global const float* z, __global float* y)
{
    y[get_global_id(0)] = fmax(z[get_global_id(0)], 0.0f);
}
"""


def load_ipython_extension(ipython) -> None:
    """Register the cell magic: `%%opencl mine` keeps its cell's OpenCL C as the text `mine`."""

    def opencl(line: str, cell: str) -> None:
        ipython.user_ns[line.strip()] = "\n" + cell  # so that line numbers are the cell's

    ipython.register_magic_function(opencl, "cell")


def devices() -> list:
    """The OpenCL devices of this machine."""
    if cl is None:
        return []
    with contextlib.suppress(cl.LogicError):  # what pyopencl raises where no driver is installed
        return [device for platform in cl.get_platforms() for device in platform.get_devices()]
    return []


def here() -> str:
    """The OpenCL devices of this machine, in one line, or how to get one."""
    if found := devices():
        return "OpenCL devices here: " + ", ".join(device.name for device in found)
    return "no OpenCL device here (the extra `opencl` of cnnlab makes one of the CPU)"


def peak() -> float:
    """FLOP/s of one core."""
    return machine.float32_peak()


# --- a forward pass by any kernels ----------------------------------------------------------------


def group(n_items: int) -> int:
    """The size of a group that divides a number of items: a power of 2, at most 64."""
    return math.gcd(n_items, 64)


def operations(conv_forward: Callable, dense_forward: Callable, rest) -> dict[str, Callable]:
    """The operations of a forward pass, by the names of the contract; `rest` has those of REST."""

    def pool_forward(x, w, b, z, stride):
        sizes = *x.shape[1:], w.shape[1], stride, *z.shape[2:]
        rest.enqueue("pool_forward", (z.size,), (group(z.size),), x, w, b, z, *sizes)

    def max_pool_forward(x, z, stride):
        sizes = *x.shape[2:], stride, *z.shape[2:]
        rest.enqueue("max_pool_forward", (z.size,), (group(z.size),), x, z, *sizes)

    def each(name):
        return lambda z, y: rest.enqueue(name, (z.size,), (group(z.size),), z, y)

    found = {"conv_forward": conv_forward, "dense_forward": dense_forward}
    found |= {"pool_forward": pool_forward, "max_pool_forward": max_pool_forward}
    return found | {name: each(name) for name in ("sigmoid", "relu")}


def forward(params: Parameters, x: np.ndarray, operations: Mapping[str, Callable]) -> np.ndarray:
    """The network's outputs for a batch."""
    strategy, outputs = SimpleNamespace(kernel=operations.__getitem__), [x]
    for place in params.network.places:
        y = np.empty((len(x), *place.shape), np.float32)
        inputs = [np.ascontiguousarray(each) for each in composition.sources(place, outputs)]
        composition.layer_forward(strategy, place, params.at(place), inputs, y)
        outputs.insert(-1, y)
    return outputs[-2]


def difference(params: Parameters, x: np.ndarray, y: np.ndarray) -> float:
    """How far outputs are from those of the reference, at most."""
    exact = composition.forward(KERNELS["reference"], params, x.astype(float))
    return float(abs(y - [*exact.values()][-1]).max())


# --- two devices ----------------------------------------------------------------------------------


def serve(connection, core: int, source: str, block: tuple[int, int], shared, sizes) -> None:
    """Be an OpenCL device with one thread, and compute rows of c = a b as long as some come."""
    os.environ |= {"POCL_DEVICES": "pthread", "POCL_MAX_PTHREAD_COUNT": "1"}
    os.sched_setaffinity(0, {core})
    (rows, cols), (m, n) = block, sizes
    context = cl.Context(devices()[:1])
    line = cl.CommandQueue(context)
    macros = [f"-DROWS={rows}", f"-DCOLS={cols}", "-DNEXT=1"]
    kernel = cl.Kernel(cl.Program(context, source).build(macros), "gemm")
    c = np.frombuffer(shared, np.float32).reshape(m, n)
    a, b = operands(m, n)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=x) for x in (a, b, b[0] * 0, c)]
    kernel.set_args(*buffers, *map(np.int32, (m, n, n, 0)))
    connection.send("ready")
    while rows_of := connection.recv():
        first, last = rows_of
        begin, n_items = time.perf_counter(), (n // cols, (last - first) // rows, 1)
        offset = 0, first // rows, 0
        cl.enqueue_nd_range_kernel(line, kernel, n_items, (32, 1, 1), global_work_offset=offset)
        cl.enqueue_copy(line, c[first:last], buffers[3], src_offset=4 * first * n)  # waits
        connection.send((begin, time.perf_counter(), first, last))


def operands(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The same two matrices in every process."""
    rng = np.random.default_rng(0)
    return rng.random((m, n), np.float32), rng.random((n, n), np.float32)


class Worker:
    """A device as the lesson's plans want one: it starts blocks of rows, and keeps when."""

    def __init__(self, connection, c: np.ndarray):
        self.connection, self.c, self.busy = connection, c, False
        self.origin = time.perf_counter()
        self.blocks: list[tuple[float, float, int, int]] = []  # begin and end in seconds, rows

    def start(self, first: int, last: int) -> None:
        """Compute these rows as soon as the device is free."""
        self.finish()
        self.connection.send((first, last))
        self.busy = True

    def finish(self) -> None:
        """Wait for the block that it is at."""
        if self.busy:
            begin, end, first, last = self.connection.recv()
            self.blocks.append((begin - self.origin, end - self.origin, first, last))
        self.busy = False


@functools.cache
def processes(source: str, blocks: tuple, m: int, n: int) -> tuple[list, np.ndarray]:
    """Connections to a process for each device, and the product that they share."""
    context, connections = multiprocessing.get_context("spawn"), []
    shared = context.RawArray("f", m * n)
    for core, block in enumerate(blocks):
        ours, theirs = context.Pipe()
        given = theirs, core, source, block, shared, (m, n)
        context.Process(target=serve, args=given, daemon=True).start()
        ours.recv()
        connections.append(ours)
    return connections, np.frombuffer(shared, np.float32).reshape(m, n)


def workers(source: str, blocks: tuple, m: int, n: int) -> list[Worker]:
    """Devices for a product of m rows, from now on: `source` has `gemm`, of these blocks each."""
    connections, c = processes(source, blocks, m, n)
    c[:] = np.nan
    return [Worker(each, c) for each in connections]


def first_free(devices: Sequence[Worker]) -> Worker:
    """The device that is free, or will be first."""
    if not (free := [each for each in devices if not each.busy]):
        ready = any_of([each.connection for each in devices])
        free = [each for each in devices if each.connection in ready]
    return free[0]


def wait(devices: Sequence[Worker]) -> None:
    """Wait for all devices; RuntimeError if one computed wrong numbers."""
    for device in devices:
        device.finish()
    for device in devices:
        for *_, first, last in device.blocks:
            if not np.allclose(device.c[first:last], exact(*device.c.shape)[first:last]):
                raise RuntimeError(f"wrong numbers in rows {first} to {last}")


@functools.cache
def exact(m: int, n: int) -> np.ndarray:
    """The product of `operands`."""
    a, b = operands(m, n)
    return a @ b


# --- drawings -------------------------------------------------------------------------------------

HUES = COLORS["vector"], COLORS["device"]  # of two devices, or two kernels


@figure
def rates(table: Mapping[str, Sequence[float]], top: float) -> Axes:
    """Draw GFLOP/s of blocks: neighbouring columns, and every 32nd; `top` is the peak."""
    _, ax = plt.subplots(figsize=(7.2, 3.2))
    for k, (label, color) in enumerate(zip(("neighbours", "every 32nd"), HUES, strict=True)):
        at = np.arange(len(table)) + (k - 0.5) * 0.38
        bars = ax.bar(at, [pair[k] for pair in table.values()], 0.36, color=color, label=label)
        ax.bar_label(bars, fmt="{:.3g}", fontsize=8)
    ax.axhline(top, color=INK, ls="--", lw=1, label="peak of all cores")
    ax.set_xticks(range(len(table)), list(table))
    ax.set(xlabel="results of a work item: rows × columns", ylabel="GFLOP/s")
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0, 0.95))
    ax.grid(axis="x", visible=False)
    return ax


@figure
def lanes(plans: Mapping[str, Sequence]) -> Sequence[Axes]:
    """Draw what each device does until the barrier, a panel for each plan."""
    _, axes = plt.subplots(len(plans), 1, figsize=(7.2, 0.7 + 0.8 * len(plans)), sharex=True)
    for ax, (name, devices) in zip(axes, plans.items(), strict=True):
        for k, device in enumerate(devices):
            spans = [(1e3 * begin, 1e3 * (end - begin)) for begin, end, *_ in device.blocks]
            ax.broken_barh(spans, (-k - 0.4, 0.8), color=HUES[k], ec="white", lw=0.7)
        ends = [device.blocks[-1][1] for device in devices]
        ax.axvline(1e3 * max(ends), color=INK, lw=1.5)
        ax.set_yticks((0, -1), ("fast", "slow"))
        ax.set_title(name, loc="left", fontsize=10)
        ax.grid(axis="y", visible=False)
    axes[-1].set_xlabel("ms; the black line is the barrier")
    return axes


@figure
def splits(parts: Mapping, blocks: Mapping, share: float, alone: float) -> Sequence[Axes]:
    """Draw ms over the fast device's share, and over rows of a queue's block: (model, measured)."""
    _, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
    for ax, table in ((left, parts), (right, blocks)):
        models, measured = zip(*table.values(), strict=True)
        ax.plot(list(table), models, color=INK, label="predicted")
        ax.plot(list(table), measured, "o", color=HUES[0], label="measured")
        ax.axhline(alone, color=HUES[1], ls="--", lw=1, label="the fast device alone")
    left.axvline(share, color="grey", ls=":", label="share by speed alone")
    left.set(xlabel="share of the rows for the fast device", ylabel="ms until the barrier")
    right.set(xscale="log", xlabel="rows of a block in the queue")
    right.set_xticks(list(blocks), list(map(str, blocks)))
    right.minorticks_off()
    left.set_ylim(0)
    left.legend(frameon=False, fontsize=9)
    return left, right


def in_flight(events: Sequence[tuple[str, int]], stages: Mapping[str, tuple[int, int]]) -> Stepper:
    """Step through rows that go down pipes: passed on, held by the next stage, or still to come.

    `events` are (stage, row) in order. `stages` has of each stage whose rows are drawn how many
    there are, and how many of them the next one holds.
    """
    frames, captions, sent = [], [], dict.fromkeys(stages, 0)
    for k, (stage, _) in enumerate(events):
        sent[stage] += 1
        follow = events[k + 1][0] if k + 1 < len(events) else ""
        if follow != "image" and follow:
            continue  # a frame shows all that one row of the image sets off
        if sent["image"] not in (1, 4, 5, 6, 8, 9, 12, 13, 28):
            continue
        with style():
            axes = Figure((4.4, 2.4)).subplots(1, len(stages))
        for ax, (name, (total, held)) in zip(axes, stages.items(), strict=True):
            for row in range(total):
                gone, here = row < sent[name] - held, row < sent[name]
                color = LAYERS[2] if gone else HUES[0] if here else "white"
                ax.barh(row, 1, 0.8, color=color, ec=INK, lw=0.4)
            ax.set(xlim=(0, 1), ylim=(total - 0.4, -0.6), xticks=(), yticks=(), title=name)
            ax.axis("off")
        frames.append(axes[0].figure)
        words = ", ".join(f"{n} of {name}" for name, n in sent.items())
        captions.append(f"Rows sent: {words}.")
    title = "An image in pipes: rows passed on (pale), held (dark), to come (white)"
    return stepper(frames, title=title, captions=captions)
