"""Lesson 32: a stepper through additions to one sum, and the exercises."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from cnnlab import cuda
from cnnlab.check import device, kinds
from cnnlab.check.verdict import Verdict
from cnnlab.cuda.emulator.faults import ATOMIC
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import INK


def additions(runs: Mapping[str, Sequence[tuple]], title: str) -> Stepper:
    """A stepper: for each access of each run what it is, its thread, the sum, what threads hold."""
    n = max(map(len, runs.values()))
    runs = {name: run + [("done", 0, *run[-1][2:])] * (n - len(run)) for name, run in runs.items()}
    steps = [{name: run[k] for name, run in runs.items()} for k in range(n)]
    said = ["; ".join(f"{name}: {state[0]}" for name, state in step.items()) for step in steps]
    said[-1] += "; the sums: " + ", ".join(f"{state[2]}" for state in steps[-1].values())
    frames = [lambda ax, step=step: draw(step, ax) for step in steps]
    return stepper(frames, title=title, captions=[f"{text}." for text in said])


def draw(states: Mapping[str, tuple], ax: Axes) -> None:
    """The sum above, what two threads hold below, an arrow for the access: a column for each."""
    ax.set(xlim=(0, 2 * len(states)), ylim=(0, 3))
    ax.axis("off")
    look = {"ha": "center", "va": "center", "fontsize": 8}
    box = look | {"bbox": {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": INK}}
    for x, (name, (what, active, total, held)) in enumerate(states.items()):
        ax.text(2 * x + 1, 2.8, name, **look | {"fontsize": 10})
        ax.text(2 * x + 1, 2.2, f"sum {total}", **box)
        for who in (0, 1):
            ax.text(2 * x + 0.5 + who, 0.9, f"thread {who}\n{held.get(who, '–')}", **box)
        if what != "done" and "own" not in what:
            ends = [(2 * x + 1, 2.0), (2 * x + 0.5 + active, 1.25)][:: 1 if "loads" in what else -1]
            ax.annotate("", ends[1], ends[0], arrowprops={"arrowstyle": "->", "color": INK})
        ax.text(2 * x + 1, 0.2, what, **look)


@kinds.choice(
    ("sums, stride 4", "sums, stride 2", "maxima, stride 4", "maxima, stride 2"),
    "Does it add the products up, or keep one of them? And where does the window of y = 1 begin?",
    "fmax keeps the largest, and windows begin at 2y and 2x.",
)
def pooling():
    """No access is at fault. The picture tells: two thirds of a map are never read."""
    return "maxima, stride 2"


def _over(mine, dz, db):
    db[...] = 0
    mine.over("my_bias", dz.size, dz, db, *dz.shape[:2], dz[0, 0].size)


@kinds.cuda_c(
    "conv_backward_bias",
    _over,
    "Two threads read the same sum, both add, both write: one addition is lost.",
    "atomicAdd(&place, value) does it in one piece.",
)
def atomic():
    """Of each image, 576 threads add to the same element: right, with a long queue."""
    return """
extern "C" __global__ void my_bias(const float* dz, float* db, int N, int F, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N * F * size) atomicAdd(&db[i / size % F], dz[i]);
}
"""


def _a_block_a_map(mine, dz, db):
    db[...] = 0
    n, f = dz.shape[:2]
    mine.launch("my_bias", (n * f,), (256,), dz, db, n, f, dz[0, 0].size)


def _one_each(traces: Sequence) -> str:
    most = max(sum(map(len, t.requests("db", True))) / len(np.unique(t.block)) for t in traces)
    return f"each block writes {most:g} times to db; once will do." * (most > 1)


@kinds.cuda_c(
    "conv_backward_bias",
    _a_block_a_map,
    "A block has map blockIdx.x, `size` elements from dz + blockIdx.x * size on, and one filter.",
    "Zero one shared sum, wait, add to it atomically, wait; then one thread adds it to db.",
    also=_one_each,
)
def privatised():
    """One global atomic a map, not 576. Shuffles would spare most of those in shared memory."""
    return """
extern "C" __global__ void my_bias(const float* dz, float* db, int N, int F, int size)
{
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (int j = threadIdx.x; j < size; j += blockDim.x)
        atomicAdd(&sum, dz[blockIdx.x * size + j]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&db[blockIdx.x % F], sum);
}
"""


def _in_two(mine, dz, db):
    (n, f), size = dz.shape[:2], dz[0, 0].size
    parts = np.full((n, f), np.nan, np.float32)
    mine.over("my_parts", n * f, dz, parts, n, f, size)
    mine.over("my_sum", f, parts, db, n, f)


def _no_atomics(traces: Sequence) -> str:
    return "an atomic is used." * any((trace.flags & ATOMIC).any() for trace in traces)


def _same_bits(operation: str, function: Callable) -> Verdict:
    dz = np.random.default_rng(0).normal(size=(64, 4, 8, 8)).astype(np.float32)
    db, results = np.empty(4, np.float32), set()
    for schedule in range(1, 101 if device.kernel(operation, function) else 1):
        with cuda.traced(0, schedule=schedule):
            function(dz, db)
        results.add(db.tobytes())
    if len(results) > 1:
        return Verdict(False, f"{operation}: 100 schedules give {len(results)} different sums")
    return device.kernel(operation, function, also=_no_atomics)


@kinds.cuda_c(
    "conv_backward_bias",
    _in_two,
    "In the first launch, thread i has map i: `size` elements of image i / F, filter i % F.",
    "Map i begins at dz + i * size. In the second launch, thread f adds parts[n * F + f].",
    by=_same_bits,
)
def two_stages():
    """A hundred schedules give the same bits: with no race and no atomic, none can give others."""
    return """
extern "C" __global__ void my_parts(const float* dz, float* parts, int N, int F, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * F) return;
    float sum = 0;
    for (int j = 0; j < size; j++) sum += dz[i * size + j];
    parts[i] = sum;
}
extern "C" __global__ void my_sum(const float* parts, float* db, int N, int F)
{
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= F) return;
    float sum = 0;
    for (int n = 0; n < N; n++) sum += parts[n * F + f];
    db[f] = sum;
}
"""
