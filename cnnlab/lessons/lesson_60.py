"""The exercises of lesson 60, its charts, and a training step with a stopwatch."""

import tracemalloc
from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.check.machine_code import counts, spills
from cnnlab.kernels import composition
from cnnlab.network import NETWORKS
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, LAYERS, as_rows, colors, measured, style

LENET5 = NETWORKS["lenet5"]


def code(kernel) -> tuple[int, float]:
    """Moves to the stack in a kernel's hot loop, and its loads for each multiplication."""
    loads, _, products, _ = counts(kernel)
    return spills(kernel), loads / products


def step(strategy, params, x, labels, grads, rate: float, lap: Callable = lambda *what: None):
    """A step of gradient descent, layer by layer: the scores (N, classes) before it.

    `strategy` has a dtype and `kernel(name)`; `lap(layer, pass)` is called after each part.
    """
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


# --- pictures -------------------------------------------------------------------------------------


def addresses() -> Stepper:
    """Step through what five windows of 3 × 3, side by side, read from three layouts."""
    frames, captions, sizes = [], [], {"image": (3, 7), "columns": (9, 5), "rows": (5, 9)}
    for t in range(9):
        with style():
            page = Figure((4.6, 2.6))
            axes = page.subplots(1, 3, width_ratios=(7, 5, 9))
        for ax, (name, (rows, columns)) in zip(axes, sizes.items(), strict=True):
            ax.set(xlim=(-0.1, columns), ylim=(9, -0.1), title=name, aspect="equal")
            ax.axis("off")
            k, l = divmod(t, 3)
            read = {
                "image": {(k, l + n) for n in range(5)},
                "columns": {(t, n) for n in range(5)},
                "rows": {(n, t) for n in range(5)},
            }[name]
            for row in range(rows):
                for column in range(columns):
                    color = COLORS["device"] if (row, column) in read else "#e4e4e4"
                    ax.add_patch(plt.Rectangle((column, row), 0.9, 0.9, color=color))
        frames.append(page)
        seen = len({(i // 3, i % 3 + n) for i in range(t + 1) for n in range(5)})
        captions.append(f"Tap {t + 1} of 9: {5 * (t + 1)} loads so far, of {seen} pixels.")
    return stepper(frames, title="One tap of five windows, in three layouts", captions=captions)


@measured
def curves(lines: Mapping[str, Mapping], *, x: str, y: str, marks=(), logs: str = "xy") -> Axes:
    """Draw lines of points {x: y} by name, and levels by name; `logs` are logarithmic axes."""
    _, ax = plt.subplots(figsize=(7.2, 3.6))
    for (name, points), color in zip(lines.items(), colors(list(lines)), strict=True):
        ax.plot(list(points), list(points.values()), "o-", ms=4, color=color, label=name)
    for k, (name, at) in enumerate(dict(marks).items()):
        ax.axhline(at, color=GREY, ls="--", lw=1)
        look = {"color": GREY, "fontsize": 8, "va": "top" if k else "bottom"}
        ax.annotate(name, (0, at), (4, -2 if k else 2), ("axes fraction", "data"),
                    "offset points", **look)  # fmt: skip
    few = max(map(max, lines.values())) < 100
    ax.set_xscale("log", base=2 if few else 10)
    ax.xaxis.set_major_formatter("{x:g}" if few else "{x:,.0f}")
    if "y" in logs:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set_ylim(ax.get_ylim()[0] / 2)  # room for a name below a level
    else:
        ax.set_ylim(0)
    ax.set(xlabel=x, ylabel=y)
    ax.legend(frameon=False, fontsize=8)
    return ax


@measured
def by_layer(times: Mapping[str, Mapping[tuple[str, str], float]]) -> Axes:
    """Draw each strategy's shares of a step: by layer, forward and backward, and the rest."""
    _, ax = plt.subplots(figsize=(7.2, 0.6 * len(times) + 1.5))
    kinds_of = "conv1", "conv2", "dense", "others"
    for row, each in enumerate(times.values()):
        left, whole = 0.0, sum(each.values())
        for which in ("forward", "backward", "update", "copy"):
            for k, kind in enumerate(kinds_of):
                part = sum(t for (n, w), t in each.items() if w == which and kind_of(n) == kind)
                look = {"color": LAYERS[k], "hatch": "//" if which == "backward" else None}
                ax.barh(row, 100 * part / whole, 0.6, 100 * left / whole, edgecolor="white", **look)
                left += part
    handles = [plt.Rectangle((0, 0), 1, 1, color=LAYERS[k]) for k in range(4)]
    handles.append(plt.Rectangle((0, 0), 1, 1, fc="white", ec=GREY, hatch="//"))
    ax.legend(handles, (*kinds_of, "backward"), ncols=5, loc="lower left", bbox_to_anchor=(0, 1),
              frameon=False, fontsize=8)  # fmt: skip
    ax.set(xlabel="% of a step", xlim=(0, 100), yticks=range(len(times)), yticklabels=list(times))
    return as_rows(ax, list(times))


def kind_of(layer: str) -> str:
    """The group of a layer in the chart: "conv1", "conv2", "dense", or "others"."""
    group = layer if layer.startswith("conv") else layer.rstrip("123")
    return group if group in ("conv1", "conv2", "dense") else "others"


# --- the exercises --------------------------------------------------------------------------------


def _as_unfold(unfold) -> str:
    rng = kinds.generator()
    for H, W, K in ((3, 3, 3), (5, 7, 2), (9, 8, 4), (6, 6, 1)):
        x = rng.random((H, W), np.float32)
        kept, P, Q = x.copy(), H - K + 1, W - K + 1
        got = np.asarray(unfold(x, K))
        expected = [x[p : p + K, q : q + K].ravel() for p in range(P) for q in range(Q)]
        if not np.array_equal(x, kept):
            return "the image is changed"
        if got.shape != (K * K, P * Q):
            return f"{H} × {W}, K={K}: expected shape {(K * K, P * Q)}, got {got.shape}"
        if not np.array_equal(got, np.array(expected).T):
            return f"{H} × {W}, K={K}: the shape is right, the numbers are not"
    many = np.zeros((64, 64), np.float32).view(Counted)
    many.keys = []
    unfold(many, 3)
    if len(many.keys) > 99:
        return f"64 × 64 pixels are indexed {len(many.keys):,} times: by slices, please"
    return ""


class Counted(np.ndarray):
    """An image that notes in `keys` how it is indexed."""

    keys: list

    def __getitem__(self, key):
        self.keys.append(key)
        return np.asarray(self)[key]


@kinds.formula(
    lambda rng: {
        "windows": int(rng.integers(1, 17)),
        "bandwidth": float(rng.uniform(1e10, 4e11)),
        "flops": float(rng.uniform(5e10, 4e11)),
    },
    "How many bytes of weights does a multiply-add load if R windows share them? It is two FLOP.",
    "4 / R bytes for 2 FLOP: R · bandwidth / 2 FLOP/s, and never more than the peak.",
)
def share_of_peak(windows, bandwidth, flops):
    """4 bytes serve R multiply-adds, 2 R FLOP; the roof is where that reaches the peak."""
    return min(1, windows * bandwidth / (2 * flops))


@kinds.tested(
    _as_unfold,
    "For one tap (k, l): which part of the image is the tap of all windows? It is a rectangle.",
    "Row k · K + l of the result is x[k : k + P, l : l + Q], made flat.",
)
def unfold(x, K):
    """A tap of all windows is a rectangle of the image: K² slices, in place of P Q windows."""
    P, Q = x.shape[0] - K + 1, x.shape[1] - K + 1
    taps = [x[k : k + P, l : l + Q].ravel() for k in range(K) for l in range(K)]
    return np.array(taps)


@kinds.labels(
    ["sound", "unfolding left out", "call price", "compiling timed", "host not waited for"],
    [
        "when does a launch return, and what does a copy wait for?",
        "what takes as long for one window as for two?",
        "what had been made before the clock started?",
        "what does only the first call do?",
        "is anything wrong here?",
        "what would a call take that multiplies nothing?",
    ],
    "What is inside the two readings of the clock, and what should be?",
    "One is sound, and one fault comes twice: fewer loads, fewer seconds, and the same sums.",
)
def diagnosis():
    """1 the copy waits; 2, 6 the call itself takes it; 3 columns cost; 4 the first call; 5 none."""
    first = ["host not waited for", "call price", "unfolding left out"]
    return [*first, "compiling timed", "sound", "call price"]


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
            numbers = most // 8 // expected[0].size
            return f"{numbers} numbers a window in memory at once; {K} + 2 · {F} are enough"
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
