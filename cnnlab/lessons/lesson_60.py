"""The exercises of lesson 60, its pictures, and what its cells count and compare with."""

import tracemalloc
from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab import cuda
from cnnlab.check import kinds
from cnnlab.check.machine_code import counts, spills
from cnnlab.kernels import composition
from cnnlab.network import NETWORKS
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import GREY, LAYERS, as_rows, colors, figure, measured, style

LENET5 = NETWORKS["lenet5"]
CORES = dict(registers=(16, 32), vectors=range(1, 5), latency=range(3, 7), per_cycle=range(1, 5))


def code(kernel) -> tuple[int, float]:
    """Moves to the stack in a kernel's hot loop, and its loads for each multiplication."""
    loads, _, products, _ = counts(kernel)
    return spills(kernel), loads / products


def error(z, x, network: Callable) -> float:
    """The largest difference of results z (30,N), up to 2,000 of them, to those in float64."""
    seen, N = np.lib.stride_tricks.sliding_window_view(x, (11, 11)), z.shape[1]
    some = np.append(np.random.default_rng(1).integers(0, N, 1998), (0, N - 1))
    taps = seen[some // seen.shape[1], some % seen.shape[1]].reshape(-1, 121)
    return float(abs(z[:, some] - network(taps.astype(float)).T).max())


def step(strategy, params, x, labels, grads, rate: float, lap: Callable = lambda *what: None):
    """A step of descent: the scores (N, classes) before it; `lap(layer, pass)` after each part."""
    outputs = [x]  # at last: source −1 is the image
    for place in params.network.places:
        y = np.empty((len(x), *place.shape), strategy.dtype)
        inputs = composition.sources(place, outputs)
        composition.layer_forward(strategy, place, params.at(place), inputs, y)
        outputs.insert(-1, y)
        lap(place.name, "forward")
    dy = np.empty_like(outputs[-2])
    strategy.kernel("cross_entropy")(outputs[-2], labels, dy)
    lap(place.name, "backward")
    for _, place, *around in composition.backwards(params.network, outputs, dy):
        learned = grads.at(place) if place.layer.parameter_shapes(place.input_shape) else ()
        composition.layer_backward(strategy, place, params.at(place), learned, *around)
        lap(place.name, "backward")
    params.flat -= rate / len(x) * grads.flat
    lap("all", "update")
    return outputs[-2]


@figure
def tile() -> Axes:
    """Draw what a tile of 2 × 2 sums loads at one tap, and its chains in time beside one chain."""
    _, (ax, clock) = plt.subplots(1, 2, figsize=(7.2, 2.5), width_ratios=(2, 3))
    cells = [[f"pixel {r}", *(f"sum +=\npixel {r} ×\nweights {v}" for v in "12")] for r in "12"]
    looks = [["white", *LAYERS[3:4] * 2], *[[LAYERS[3], *LAYERS[1:2] * 2]] * 2]
    ax.table([["", "weights 1", "weights 2"], *cells], looks, cellLoc="center", bbox=(0, 0, 1, 1))
    ax.set_axis_off()
    for row, start in enumerate((0, 0, 1, 2, 3)):
        clock.broken_barh([(start + t, 3.9) for t in (0, 4, 8)], (row - 0.4, 0.8), fc=LAYERS[1])
    names = "a chain alone", *("one of four",) * 4
    clock.set(xlabel="cycles", xticks=range(16), yticks=range(5), yticklabels=names)
    return as_rows(clock, names)


def addresses() -> Stepper:
    """Draw a tile, and step through what 2 × 3 windows read from three layouts at three taps."""
    tile(title="One tap of a 2 × 2 tile; chains of multiply-adds that take 4 cycles")
    image, frames = np.arange(20).reshape(4, 5), []
    columns = np.lib.stride_tricks.sliding_window_view(image, (3, 3)).reshape(6, 9).T
    looks = [LAYERS[1], LAYERS[4], LAYERS[2], "#3aa37a", LAYERS[2], LAYERS[2]]
    for t in (0, 1, 3):
        with style():
            axes = Figure((4.6, 2.6)).subplots(1, 3, width_ratios=(5, 6, 9))
        spots = {"image\ncolumn →, row ↓": divmod(columns[t], 5)}
        spots |= {"columns\nwindow →, tap ↓": (t, range(6)), "rows\ntap →, window ↓": (range(6), t)}
        for ax, name, numbers in zip(axes, spots, (image, columns, columns.T), strict=True):
            fills, high = np.full(numbers.shape, "#e8e8e8"), len(numbers) / 9
            fills[spots[name]] = looks
            ax.table(numbers, fills, cellLoc="center", bbox=(0, 1 - high, 1, high))
            ax.set_title(name, fontsize=7)
            ax.set_axis_off()
        frames.append(axes[0].figure)
    said = [f"Tap {divmod(t, 3)}. Blue: window 0; orange: right; green: below" for t in (0, 1, 3)]
    return stepper(frames, title="A tap of 2 × 3 windows: numbers of pixels", captions=said)


@measured
def curves(lines: Mapping[str, Mapping], *, x: str, y: str, marks=(), knee=None, logs="xy") -> Axes:
    """Draw lines of points {x: y} by name, levels by name, a knee; `logs` are logarithmic axes."""
    _, ax = plt.subplots(figsize=(7.2, 3.6))
    for (name, points), color in zip(lines.items(), colors(list(lines)), strict=True):
        ax.plot(list(points), list(points.values()), "o-", ms=4, color=color, label=name)
    for (name, at), dashes in zip(dict(marks).items(), ("--", "-."), strict=False):
        ax.axhline(at, color=GREY, ls=dashes, lw=1, label=name)
    if knee:
        ax.axvline(knee[1], color=GREY, ls=":", lw=1, label=knee[0])
    few = max(map(max, lines.values())) < 100
    ax.set_xscale("log", base=2 if few else 10)
    if few:
        ax.set_xticks(sorted({at for points in lines.values() for at in points}))
    ax.xaxis.set_major_formatter("{x:.2g}" if few else "{x:,.0f}")
    ax.set_yscale("log" if "y" in logs else "linear")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set(xlabel=x, ylabel=y, ylim=(None if "y" in logs else 0, None))
    ax.legend(frameon=False, fontsize=8, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    return ax


@measured
def by_layer(times: Mapping[str, Mapping[tuple[str, str], float]]) -> Axes:
    """Draw each strategy's shares of a step: by layer, forward and backward, and the rest."""
    _, ax = plt.subplots(figsize=(7.2, 0.6 * len(times) + 1.5))
    kinds_of = "conv1", "conv2", "dense", "max_pool", "rest"
    for row, each in enumerate(times.values()):
        left, whole = 0.0, sum(each.values())
        group = {n: next((k for k in kinds_of if n.startswith(k)), kinds_of[4]) for n, _ in each}
        for which in ("forward", "backward", "update", "copy"):
            for k, kind in enumerate(kinds_of):
                part = sum(t for (n, w), t in each.items() if (w, group[n]) == (which, kind))
                look = {"color": LAYERS[k], "hatch": "//" if which == "backward" else None}
                ax.barh(row, 100 * part / whole, 0.6, 100 * left / whole, edgecolor="white", **look)
                left += part
    handles = [plt.Rectangle((0, 0), 1, 1, color=LAYERS[k]) for k in range(5)]
    handles.append(plt.Rectangle((0, 0), 1, 1, fc="white", ec=GREY, hatch="//"))
    ax.legend(handles, (*kinds_of, "backward"), ncols=6, loc="lower left", bbox_to_anchor=(0, 1),
              frameon=False, fontsize=8)  # fmt: skip
    ax.set(xlabel="% of a step", xlim=(0, 100), yticks=range(len(times)), yticklabels=list(times))
    return as_rows(ax, list(times))


@kinds.formula(
    lambda rng: {name: int(rng.choice(each)) for name, each in CORES.items()},
    "R windows need R · V registers for sums, V for weights, and one for a pixel: which R is most?",
    "Latency times multiply-adds a cycle is how many chains keep a core busy; never above 1.",
)
def share_of_peak(registers, vectors, latency, per_cycle):
    """R V + V + 1 registers at most; of latency × per_cycle chains (Little's law) there are R V."""
    return min(1, (registers - vectors - 1) // vectors * vectors / (latency * per_cycle))


@kinds.labels(
    ["sound", "unfolding left out", "call price", "compiling timed", "GPU not waited for"],
    [
        "when does a launch return, and what does a copy wait for?",
        "what takes as long for one window as for two: the sums, or what is around them?",
        "what had been made before the clock started?",
        "what does only the first call do?",
        "is anything wrong here?",
        "what would a call take that multiplies nothing?",
    ],
    "What is inside the two readings of the clock, and what should be?",
    "One is sound, and one fault comes twice: fewer loads, fewer seconds, and the same sums.",
)
def diagnosis():
    """1 8 µs only start it; 2, 6 the call itself; 3 columns cost; 4 the first call; 5 none."""
    first = ["GPU not waited for", "call price", "unfolding left out"]
    return [*first, "compiling timed", "sound", "call price"]


def _as_both_layers(answer) -> str:
    rng = kinds.generator()
    kernels = answer if hasattr(answer, "launch") else cuda.Kernels(answer())
    N, Q, z = 36, 9, np.full((30, 36), np.nan, np.float32)
    x = rng.random((N // Q + 10, Q + 10), np.float32)
    w, v = (rng.standard_normal((taps, 32), np.float32) / 4 for taps in (121, 30))
    b, c = rng.standard_normal((2, 32), np.float32)
    seen = np.lib.stride_tricks.sliding_window_view(x, (11, 11)).reshape(N, 121)
    h = 1 / (1 + np.exp(-(seen.astype(float) @ w + b)))[:, :30]
    expected = 1 / (1 + np.exp(-(h @ v + c)))[:, :30]
    with cuda.traced() as traces:
        kernels.launch("both_layers", (2,), (32,), x, w, b, v, c, z, N, Q)
    faults, again = traces[0].faults(), traces[0].traffic()["z"]["reads"]
    if faults or again:
        return str(faults[0]) if faults else f"z is read {again:,} times: h stays in registers"
    return "" if np.allclose(z, expected.T, atol=1e-5) else "the numbers are not right"


@kinds.tested(
    _as_both_layers,
    "A thread has all 30 sums of its window: after the sigmoid they are the taps of layer 2.",
    "Unroll loops over sums, so that they have numbers known at compile time; guard n < N.",
)
def both_layers():
    """h needs no array in memory: 240 of 364 bytes a window are gone, and a launch."""
    return r"""
#define EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)
extern "C" __global__ void both_layers(const float* x, const float* w, const float* b,
                                       const float* v, const float* c, float* z, int N, int Q)
{
    int n = blockIdx.x * 32 + threadIdx.x;
    if (n >= N) return;
    float h[30], y[30];
    EACH(j, 30) h[j] = b[j], y[j] = c[j];
    for (int t = 0; t < 121; t++) {
        float pixel = x[(n / Q + t / 11) * (Q + 10) + n % Q + t % 11];
        EACH(j, 30) h[j] += w[t * 32 + j] * pixel;
    }
    EACH(i, 30) {
        float tap = 1 / (1 + expf(-h[i]));
        EACH(j, 30) y[j] += v[i * 32 + j] * tap;
    }
    EACH(j, 30) z[j * N + n] = 1 / (1 + expf(-y[j]));
}
"""


def _as_rows_alone(convolve) -> str:
    rng = kinds.generator()
    for F, H, W, K in ((2, 5, 6, 3), (3, 12, 11, 11), (1, 7, 9, 1), (2, 90, 70, 11)):
        x, w = rng.random((H, W)), rng.random((F, K, K))
        seen = np.lib.stride_tricks.sliding_window_view(x, (K, K))
        expected = np.einsum("pqkl,fkl->fpq", seen, w)
        tracemalloc.start()
        try:
            got = np.asarray(convolve(x, w))
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        if got.shape != expected.shape:
            return f"expected shape {expected.shape}, got {got.shape}"
        if not np.allclose(got, expected):
            return f"w {w.shape}, x {x.shape}: the shape is right, the numbers are not"
        if H == 90 and most > 8 * 40 * expected[0].size:
            most //= 8 * expected[0].size
            return f"{most} numbers a window in memory at once; {K} + 2 · {F} are enough"
    return ""


@kinds.tested(
    _as_rows_alone,
    "Unfold along rows only: U (K,H,Q), where U[l] is the image from column l on.",
    "z += w[:, k] @ U[:, k : k + P]: a product for each row of taps, from a shifted view of U.",
)
def challenge_rows_alone(x, w):
    """K-fold, not K²-fold: windows one below the other share all rows of U but one."""
    (F, K, _), Q = w.shape, x.shape[1] - w.shape[2] + 1
    P, U = len(x) - K + 1, np.array([x[:, l : l + Q] for l in range(K)])
    z = np.zeros((F, P * Q), x.dtype)
    for k in range(K):
        z += w[:, k] @ U[:, k : k + P].reshape(K, P * Q)
    return z.reshape(F, P, Q)
