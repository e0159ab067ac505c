"""Lesson 33: what lies on the device, pictures of launches, and the exercises."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import prod

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab import cuda
from cnnlab.check import inputs, kinds
from cnnlab.check.verdict import Verdict, differences
from cnnlab.cuda.occupancy import compiled
from cnnlab.measure.studies import Study, study
from cnnlab.network import Network, Parameters
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, INK, figure

RATE = 0.4
Times = Sequence[tuple[float, float, float]]  # of each launch: asked for, begun, ended; seconds


def memory(net: Network, images, labels, n: int, xp=np) -> dict:
    """What lies on the device for steps of n images, by name; sizes are in capital letters.

    A layer's `w`, `b` and their gradients `dw`, `db` are views of `params` and `grads`.
    """
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


def registers() -> Study:
    """What NVRTC makes of image_gradients, by architecture and blocks that an SM must hold.

    Registers and bytes of local memory of a thread, and bytes of a block's shared memory.
    """

    def run(architecture: str, blocks: int) -> tuple[int, int, int]:
        bounds = f"__launch_bounds__(D, {blocks})"
        source = cuda.load("step").source.replace("__launch_bounds__(D)", bounds)
        return compiled(source, architecture)["image_gradients"]

    cards = "sm_75", "sm_80", "sm_89", "sm_90"
    return study("33-registers", run, [(card, blocks) for card in cards for blocks in (1, 2)])


@figure
def needs(names: Sequence[str], rows: Sequence[int], direct: Sequence[Sequence[int]]) -> Axes:
    """Draw launches as a graph: an arrow leads to each from those that it waits for."""
    columns = [[k for k, y in enumerate(rows) if y == row] for row in rows]
    at = {k: (2 * each.index(k) - len(each) + 1, rows[k]) for k, each in enumerate(columns)}
    _, ax = plt.subplots(figsize=(8, 0.5 + 0.52 * max(rows)))
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": COLORS["device"]}
    for k, (x, y) in at.items():
        ax.text(x, y, f"{k} {names[k]}", ha="center", va="center", fontsize=8, bbox=box, zorder=2)
        for i in direct[k]:
            ends = (x, y - 0.27), (at[i][0], at[i][1] + 0.27)
            color = INK if rows[k] - rows[i] == 1 else "#bbbbbb"  # behind the boxes that it passes
            ax.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": color}, zorder=1)
    wide = max(map(len, columns))
    ax.set(xlim=(-wide, wide), ylim=(max(rows) + 0.4, min(rows) - 0.4))
    ax.axis("off")
    return ax


def queue(names: Sequence[str], runs: Mapping[str, Times], title: str) -> Stepper:
    """Step through the launches that the host asks for: what waits, what each device works on."""
    asked = [times[0] for times in next(iter(runs.values()))]
    frames, captions, end = [], [], max(times[-1][2] for times in runs.values())
    for name, now in zip([*names, ""], [*asked, end], strict=True):
        frames.append(lambda ax, now=now: draw(ax, runs, now, end))
        waits = {card: sum(a <= now < b for a, b, _ in times) for card, times in runs.items()}
        state = ", ".join(f"{card}: {n} in the queue" for card, n in waits.items())
        said = f"the host has asked for {name}. {state}." if name else "all launches are done."
        captions.append(f"{1e6 * now:.0f} µs: {said}")
    return stepper(frames, title=title, captions=captions)


def draw(ax: Axes, runs: Mapping[str, Times], now: float, end: float) -> None:
    """Host and devices until `now`: a bar for each launch that is asked for, or under way."""
    asked = [0.0, *(times[0] for times in next(iter(runs.values())))]
    rows = {"host": list(pairwise(asked))} | {c: [x[1:] for x in r] for c, r in runs.items()}
    for row, bars in enumerate(rows.values()):
        for begin, stop in bars:
            width, color = min(stop, now) - begin, COLORS["device"] if row else INK
            if width > 0:
                ax.barh(row, 1e6 * width, 0.6, 1e6 * begin, color=color, edgecolor="white")
    ax.axvline(1e6 * now, color=INK, lw=0.8)
    ax.set(xlim=(0, 1e6 * end), ylim=(len(rows) - 0.5, -0.5), xlabel="µs")
    ax.set_yticks(range(len(rows)), rows)
    ax.grid(visible=False)


# --- the exercises --------------------------------------------------------------------------------


@kinds.labels(
    ["launches", "DRAM", "requests", "chain", "clock"],
    ["what is the same?", "what differs?", "what is spared?", "what waits?", "what grows?"],
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
    "Keep for each launch when it ends, and which of those that it waits for ends last.",
    "Begin at the launch that ends last, and go back along the ones that were waited for.",
)
def path(seconds, needs):
    """The ends are the lesson's; who was waited for leads back."""
    ends, waited_for = [], []
    for k, each in enumerate(needs):
        last = max(each, key=lambda i: ends[i], default=None)
        ends.append(seconds[k] + (0 if last is None else ends[last]))
        waited_for.append(last)
    links = [max(range(len(ends)), key=lambda k: ends[k])]
    while waited_for[links[-1]] is not None:
        links.append(waited_for[links[-1]])
    return links[::-1]


def _right_on(sizes: Sequence[tuple], make: Callable, operation: str, function) -> Verdict:
    """The verdict on a kernel; `make` makes inputs, and expected results by name, of each size."""
    for size in sizes:
        given, expected = make(np.random.default_rng(inputs.first_seed()), *size)
        results = {
            name: np.full(value.shape, np.nan, np.float32) for name, value in expected.items()
        }
        try:
            with cuda.traced() as traces:
                function(*given, *results.values())
        except Exception as error:  # an answer may fail in any way: the verdict says how
            return Verdict(False, f"{operation}: raised {type(error).__name__}: {error}")
        if faults := [fault for trace in traces for fault in trace.faults()]:
            return Verdict(False, f"{operation}: {faults[0]}")
        for name, value in expected.items():
            if wrong := differences(name, results[name], value, np.full_like(value, 1e-4)):
                return Verdict(False, f"{operation}: {wrong}")
    return Verdict(True, f"{operation}: right on {len(sizes)} sizes, and no access is at fault")


def _windows(rng, n=2, f=2, p=2, q=3, k=2) -> tuple[list, dict]:
    shapes = (n, f, p, q), (f, k, k), (n, f, p * k, q * k)
    dz, w, y = (rng.uniform(0.02, 0.98, shape).astype(np.float32) for shape in shapes)
    spread = np.repeat(np.repeat(dz, k, axis=2), k, axis=3)
    return [dz, w, y], {"out": spread * np.tile(w, (1, p, q)) * y * (1 - y)}


@kinds.cuda_c(
    "fused backward",
    lambda mine, dz, w, y, out: mine.over(
        "my_backward", out.size, dz, w, y, out, out.size, *w.shape[:2], *y.shape[2:]
    ),
    "Take the thread's number apart into row, column, map and image. Which window is it in?",
    "Window (row / S, col / S), weight (row % S, col % S); then · y · (1 − y) in the same line.",
    by=partial(_right_on, ((), (1, 1, 1, 1, 1), (3, 6, 6, 6, 4), (5, 2, 9, 7, 3)), _windows),
)
def fused():
    """The gradient between the two operations stays in a register: not written, and not read."""
    return """
extern "C" __global__ void my_backward(const float* dz, const float* w, const float* y, float* out,
                                       int size, int F, int S, int H, int W)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    int col = i % W, row = i / W % H, f = i / (W * H) % F, n = i / (W * H * F);
    int P = H / S, Q = W / S;
    float dy = w[(f * S + row % S) * S + col % S]
               * dz[((n * F + f) * P + row / S) * Q + col / S];
    out[i] = dy * y[i] * (1.0f - y[i]);
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
    by=partial(_right_on, ((), (1, 1, 1), (9, 216, 10), (40, 7, 3)), _dense),
)
def challenge_backward():
    """Three launches that do not need each other are one: side by side without streams."""
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
