"""Lesson 33: what lies on the device, pictures of launches, and the exercises."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from pathlib import Path
from tempfile import NamedTemporaryFile

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab import cuda
from cnnlab.check import inputs, kinds
from cnnlab.check.verdict import Verdict, differences
from cnnlab.cuda.occupancy import compiled
from cnnlab.network import Network, Parameters
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, INK, figure

RATE = 0.4


def memory(net: Network, images, labels, n: int, there: bool = False) -> dict:
    """What lies in memory for steps of n images, by name; `there` on a GPU; SIZES are capitals.

    A layer's `w`, `b` and their gradients `dw`, `db` are views of `params` and `grads`."""
    xp = cuda.array_module() if there else np
    names, flat = list(net.parameter_shapes), xp.asarray(net.parameters(seed=0).flat)
    a = {"params": flat, "sums": xp.zeros(flat.size + 1, np.float32)}  # and the loss
    a |= {"grads": a["sums"][:-1], "losses": xp.zeros(n, np.float32), "total": xp.zeros(1)}
    a |= zip(names, Parameters(net, flat=flat), strict=True)
    a |= zip((k.replace("_", "_d") for k in names), Parameters(net, flat=a["grads"]), strict=True)
    a |= {"images": xp.asarray(images), "labels": xp.asarray(labels).astype(np.int32)}
    a |= {"order": xp.arange(len(images), dtype=np.int32), "rate": xp.asarray([RATE], np.float32)}
    a |= {"position": xp.asarray([0, len(images)], np.int32), "y": xp.empty(n, np.int32)}
    a |= {"x": xp.empty((n, *net.image_shape), np.float32), "N": n, "RATE": RATE / n}
    a |= {"PIXELS": prod(net.image_shape), "PARAMS": flat.size, "CLASSES": net.classes}
    for name in ("conv", "pool", "dense"):
        for what in ("z", "y", "dy", "dz"):
            a[f"{name}_{what}"] = xp.empty((n, *net[name].shape), np.float32)
        size, maps = a[f"{name}_z"].size, a[f"{name}_b"].size
        a |= {f"{name.upper()}_SIZE": size, f"{name.upper()}_BIAS": (n, maps, size // (n * maps))}
    conv, pool, dense = (net[name] for name in ("conv", "pool", "dense"))
    a["CONV"] = n, *conv.input_shape, conv.layer.filters, conv.layer.kernel, 1
    a["POOL"] = n, *pool.input_shape, pool.layer.size, pool.layer.size
    a["DENSE"] = n, prod(dense.input_shape), *dense.shape
    a |= {"INPUTS": a["DENSE"][1], "BLOCKS": (n + 1) // 2, "COLUMNS": flat.size // 32 + 1}
    return a | {"partials": xp.empty((a["BLOCKS"], 32 * a["COLUMNS"]), np.float32)}


def machine_code(read: Callable, file: str, card: str) -> dict[str, tuple]:
    """What NVRTC makes of each kernel of a file, for a card such as "sm_90"; it needs nvdisasm.

    A thread's registers, bytes of local memory and of shared; what `read` finds in machine code.
    """
    from cuda import core

    source, options = cuda.load(file).source, core.ProgramOptions(arch=card, std="c++17")
    with NamedTemporaryFile(suffix=".cubin") as cubin:
        Path(cubin.name).write_bytes(core.Program(source, "c++", options).compile("cubin").code)
        text = subprocess.check_output(["nvdisasm", "-c", cubin.name], text=True)
    kernels, needs = r"^\.text\.(\w+):\n(.*?)(?:^\s+\.(?:weak|section)|\Z)", compiled(source, card)
    return {k: (*needs[k], *read(body)) for k, body in re.findall(kernels, text, re.M | re.S)}


@figure
def needs(names: Sequence[str], rows: Sequence[int], direct: Sequence, path=()) -> Axes:
    """Draw launches as a graph: arrows lead to each from those it waits for; a `path` is thick."""
    columns = [[k for k, y in enumerate(rows) if y == row] for row in rows]
    at = {k: (2 * each.index(k) - len(each) + 1, rows[k]) for k, each in enumerate(columns)}
    _, ax = plt.subplots(figsize=(8, 0.5 + 0.68 * max(rows)))
    for k, (x, y) in at.items():
        box = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": INK, "lw": 3 if k in path else 0.8}
        ax.text(x, y, f"{k} {names[k]}", ha="center", va="center", fontsize=8, bbox=box, zorder=2)
        for i in direct[k]:
            skips = rows[k] - rows[i] > 1  # then around the boxes that it passes
            arrow = {"arrowstyle": "->", "color": "#999999" if skips else INK}
            arrow["connectionstyle"] = f"arc3,rad={0.3 * skips}"
            ax.annotate("", (x, y - 0.3), (at[i][0], at[i][1] + 0.3), arrowprops=arrow, zorder=1)
    wide = max(map(len, columns))
    ax.set(xlim=(-wide, wide), ylim=(max(rows) + 0.4, min(rows) - 0.4))
    ax.axis("off")
    return ax


def queue(names: Sequence[str], runs: Mapping[str, Sequence], title: str) -> Stepper:
    """Step through launches: by run, the seconds when each is asked for, begins and ends."""
    asked = [times[0] for times in next(iter(runs.values()))]
    end = max(times[-1][2] for times in runs.values())
    rows = {"host": [*pairwise([0.0, *asked])]} | {k: [x[1:] for x in r] for k, r in runs.items()}

    def draw(ax: Axes, now: float) -> None:
        for row, bars in enumerate(rows.values()):
            done = [(1e6 * a, 1e6 * (min(b, now) - a)) for a, b in bars if a < now]
            color = COLORS["device"] if row else INK
            ax.broken_barh(done, (row - 0.3, 0.6), color=color, edgecolor="white")
        ax.axvline(1e6 * now, color=INK, lw=0.8)
        ax.set(xlim=(0, 1e6 * end), ylim=(len(rows) - 0.5, -0.5), xlabel="µs")
        ax.set_yticks(range(len(rows)), rows)
        ax.grid(visible=False)

    frames, captions = [], []
    for name, now in zip([*names, ""], [*asked, end], strict=True):
        waits = {run: sum(a <= now < b for a, b, _ in times) for run, times in runs.items()}
        state = ", ".join(f"{run}: {n} in the queue" for run, n in waits.items())
        said = f"the host has asked for {name}. {state}." if name else "all launches are done."
        captions.append(f"{1e6 * now:.0f} µs: {said}")
        frames.append(partial(draw, now=now))
    return stepper(frames, title=title, captions=captions)


@kinds.labels(
    ["launches", "DRAM", "requests", "chain", "clock"],
    ["what is the same?", "what differs?", "what is spared?", "what waits?", "what changes it?"],
    "Which limit would explain that? Would it change anything else, too?",
    "A faster part helps only where it is the limit. And a clock can be at fault.",
)
def binds():
    """What does not change a time was not its limit; what changes it in proportion was."""
    return ["launches", "DRAM", "requests", "chain", "clock"]


def _right_path(mine: Callable) -> str:
    rng = np.random.default_rng(inputs.first_seed())
    for n in (1, 2, 5, 9, 14):
        seconds = rng.uniform(1, 9, n).round(2).tolist()
        needs = [[i for i in range(k) if rng.random() < 0.4] for k in range(n)]
        longest = path.model()(seconds, needs)
        got = [int(k) for k in mine(seconds, [list(each) for each in needs])]
        if any(i not in needs[k] for i, k in pairwise(got)):
            return f"in {got} a launch does not need the one before it; needs = {needs}"
        lengths = [sum(seconds[k] for k in each) for each in (got, longest)]
        if not np.isclose(*lengths):
            return f"{got} takes {lengths[0]:.2f}, {longest} {lengths[1]:.2f}; needs = {needs}"
    return ""


@kinds.tested(
    _right_path,
    "Keep for each launch the longest path that ends with it.",
    "It is the longest of those of the launches that it needs, and then the launch itself.",
)
def path(seconds, needs):
    """A launch's longest path is the longest of those that it needs, and itself."""
    paths = []
    for k, each in enumerate(needs):
        before = max((paths[i] for i in each), default=(0, []))
        paths.append((before[0] + seconds[k], [*before[1], k]))
    return max(paths)[1]


def _right_on(sizes: Sequence[tuple], make: Callable, most: float, op: str, function) -> Verdict:
    """The verdict on a kernel: right on what `make` makes, with `most` loads for each result."""
    for size in sizes:
        given, expected = make(np.random.default_rng(inputs.first_seed()), *size)
        results = {k: np.full(v.shape, np.nan, np.float32) for k, v in expected.items()}
        try:
            with cuda.traced() as traces:
                function(*given, *results.values())
        except Exception as error:  # an answer may fail in any way: the verdict says how
            return Verdict(False, f"{op}: raised {type(error).__name__}: {error}")
        if faults := [fault for trace in traces for fault in trace.faults()]:
            return Verdict(False, f"{op}: {faults[0]}")
        for name, value in expected.items():
            if wrong := differences(name, results[name], value, np.full_like(value, 1e-4)):
                return Verdict(False, f"{op}: {wrong}")
        loads = sum(trace.loads() for trace in traces)
        if loads > (allowed := most * sum(map(np.size, expected.values()))):
            return Verdict(False, f"{op}: right, but {loads:,} loads, where {allowed:,.0f} do")
    return Verdict(True, f"{op}: right on {len(sizes)} sizes, and no access is at fault")


def _images(rng, n=2) -> tuple[list, dict]:
    x, w, b = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((n, 28, 28), (6, 5, 5), 6))
    patches = np.lib.stride_tricks.sliding_window_view(x, (5, 5), axis=(1, 2))
    z = np.einsum("npqkl,fkl->nfpq", patches, w) + b[:, None, None]
    return [x, w, b], {"y": 1 / (1 + np.exp(-z))}


@kinds.cuda_c(
    "convolve",
    lambda mine, x, *rest: mine.over("my_convolve", 216 * len(x), x, *rest, len(x)),
    "Load the thread's 8 x 8 pixels into an array `patch` first. Where does its window begin?",
    "Let the weights be the outer loops: load one, use it for all 16 sums, then load the next.",
    by=partial(_right_on, ((), (1,), (5,)), _images, 90 / 16),
)
def convolve():
    """64 pixels, 25 weights and a bias, each loaded once: registers hold what is used again."""
    return """
constexpr int H = 28, W = 28, F = 6, K = 5, S = 4, P = 6, Q = 6, EDGE = S + K - 1;
#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)

extern "C" __global__ void my_convolve(const float* x, const float* w, const float* b, float* y,
                                       int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N * F * P * Q) return;
    int col = i % Q * S, row = i / Q % P * S, f = i / (P * Q) % F, n = i / (F * P * Q);
    float patch[EDGE][EDGE], sum[S][S], bias = b[f];
    EACH(k, EDGE) EACH(l, EDGE) patch[k][l] = x[(n * H + row + k) * W + col + l];
    EACH(p, S) EACH(q, S) sum[p][q] = bias;
    EACH(k, K) EACH(l, K) {
        float weight = w[(f * K + k) * K + l];
        EACH(p, S) EACH(q, S) sum[p][q] += weight * patch[p + k][q + l];
    }
    EACH(p, S) EACH(q, S)
        y[((n * F + f) * P * S + row + p) * Q * S + col + q] = 1.0f / (1.0f + expf(-sum[p][q]));
}
"""


def _dense(rng, n=3, d=20, o=5) -> tuple[list, dict]:
    x, w, dz = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((n, d), (o, d), (n, o)))
    return [x, w, dz], {"dw": dz.T @ x, "db": dz.sum(0), "dx": dz @ w}


@kinds.cuda_c(
    "dense backward",
    lambda mine, x, w, *rest: mine.over(
        "my_dense", sum(out.size for out in rest[1:]), x, w, *rest, *x.shape, len(w)
    ),
    "The first O * D threads have a weight each, the next O a bias, the next N * D an input.",
    "Subtract from a thread's number what the threads before its kind are. Who is left returns.",
    by=partial(_right_on, ((), (1, 1, 1), (9, 216, 10), (40, 7, 3)), _dense, np.inf),
)
def challenge_backward():
    """Three launches that do not need each other can be one: side by side without streams."""
    return """
extern "C" __global__ void my_dense(const float* x, const float* w, const float* dz, float* dw,
                                    float* db, float* dx, int N, int D, int O)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, weights = O * D;
    float sum = 0;
    if (i < weights) {
        for (int n = 0; n < N; n++) sum += dz[n * O + i / D] * x[n * D + i % D];
        dw[i] = sum;
    } else if (i < weights + O) {
        for (int n = 0; n < N; n++) sum += dz[n * O + i - weights];
        db[i - weights] = sum;
    } else if (i < weights + O + N * D) {
        int j = i - weights - O;
        for (int o = 0; o < O; o++) sum += dz[j / D * O + o] * w[o * D + j % D];
        dx[j] = sum;
    }
}
"""
