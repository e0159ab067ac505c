"""The exercises of lesson 02, the frames of its stepper, and its drawings."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds, machine_code
from cnnlab.check.inputs import generator
from cnnlab.plots.style import INK, WRONG, colors, figure


def draw(*shape: int) -> np.ndarray:
    """Multiples of 1/8 in (−1, 0), so that there are ties, and none is above zero."""
    return (generator().integers(-7, 0, shape) / 8).astype(np.float32)


def windows(x: np.ndarray, S: int, P: int, Q: int) -> np.ndarray:
    """The windows S × S of x (N,C,H,W), side by side, as rows: (N,C,P,Q,S²)."""
    cut = x[:, :, : P * S, : Q * S].reshape(*x.shape[:2], P, S, Q, S)
    return cut.transpose(0, 1, 2, 4, 3, 5).reshape(*x.shape[:2], P, Q, S * S)


def not_max(answer: Callable) -> str:
    """What is wrong with a max pooling that keeps its winners."""
    for S, P, Q in ((4, 2, 3), (2, 3, 2), (3, 1, 1)):
        x, z = draw(2, 3, P * S + S - 1, Q * S), np.full((2, 3, P, Q), np.nan, np.float32)
        x[0, 0, 0, 0] = x[1, 2, S - 1, S - 1] = np.nan  # first, and last, of a window
        winner, rows = np.full(z.shape, -1, np.int8), windows(x, S, P, Q)
        answer(x, z, winner, S)
        if not np.array_equal(z, rows.max(-1), equal_nan=True):
            return f"z is not the largest of each window of {S} × {S}, where NaN is largest"
        if not np.array_equal(winner, rows.argmax(-1)):
            return f"winner is not k · {S} + l of the first of the largest, in {S} × {S}"
    return ""


@kinds.tested(
    not_max,
    "Begin each window with its first element: best = x[n, c, p·stride, q·stride], and winner 0.",
    "Of equals the first wins; NaN is never <= a number, and wins: what if best is one?",
)
@numba.njit
def max_with_winners(x, z, winner, stride=4):
    """Backward then reads 216 bytes for an image, not 13,824. x itself can only be dropped if no
    other backward needs it: here that of the sigmoid before does."""
    for n in range(z.shape[0]):
        for c in range(z.shape[1]):
            for p in range(z.shape[2]):
                for q in range(z.shape[3]):
                    best, at = x[n, c, p * stride, q * stride], 0
                    for k in range(stride):
                        for l in range(stride):
                            value = x[n, c, p * stride + k, q * stride + l]
                            if not (value <= best or np.isnan(best)):  # NaN wins, and stays
                                best, at = value, k * stride + l
                    z[n, c, p, q], winner[n, c, p, q] = best, at


def not_the_layer(answer: Callable) -> str:
    """What is wrong with one thread of the report's pooling."""
    x, w = draw(1, 1, 24, 24), draw(4, 4)
    for p, q in ((0, 0), (1, 0), (2, 5), (5, 5)):
        right = 0.5 + windows(x, 4, 6, 6)[0, 0, p, q] @ w.ravel()
        if not np.isclose(got := answer(x[0, 0], w, 0.5, p, q), right):
            return f"expected {right:.4f} at p={p}, q={q}, got {got:.4f}"
    return ""


@kinds.tested(
    not_the_layer,
    "Compare with the formula at the top: how do the sixteen products become one number?",
    "Six windows of a map begin at rows 0, 4, …, 20. Where do those of the listing begin?",
)
def repaired(x, w, b, p, q):
    """A sum, not a maximum; and windows 4 apart: by 2, no window reads rows 14 to 23."""
    return b + (x[4 * p : 4 * p + 4, 4 * q : 4 * q + 4] * w).sum()


def not_the_gradient(answer: Callable) -> str:
    """What is wrong with the gradient of the weights, of images side by side."""
    for S, C, P, Q, N in ((3, 1, 3, 2, 3), (4, 2, 2, 3, 21)):
        x, dz, dw = draw(C, P * S, Q * S, N), draw(C, P, Q, N), np.full((C, S, S), np.nan, "f4")
        answer(x, dz, dw, S)
        rows = windows(x.transpose(3, 0, 1, 2), S, P, Q)
        right = np.einsum("ncpqm,cpqn->cm", rows, dz).reshape(dw.shape)
        if not np.allclose(dw, right, rtol=1e-4):
            return f"dw[0, 0, 0]: expected {right[0, 0, 0]:.4f}, got {dw[0, 0, 0]:.4f}"
    if hasattr(answer, "inspect_asm") and not machine_code.vector_instructions(answer):
        return "right, but it has no vector instructions: its sums are chains"
    return ""


@kinds.tested(
    not_the_gradient,
    "The compiler may not reorder a float sum, but it may keep N sums, one for each image.",
    "sums[n] += dz[c, p, q, n] * x[c, i, j, n]; add these up at the end.",
)
@numba.njit
def by_images(x, dz, dw, stride=4):
    """A sum for each image is as many chains as images; neighbours share a vector."""
    sums = np.empty(x.shape[3], x.dtype)
    for c in range(dz.shape[0]):
        for k in range(stride):
            for l in range(stride):
                sums[:] = 0
                for p in range(dz.shape[1]):
                    for q in range(dz.shape[2]):
                        g, tap = dz[c, p, q], x[c, p * stride + k, q * stride + l]
                        for n in range(sums.size):
                            sums[n] += g[n] * tap[n]
                dw[c, k, l] = sums.sum()


def tiles(numbers: np.ndarray, title: str, marked: np.ndarray) -> Callable[[Axes], None]:
    """A frame: a window's numbers (K,K) in tiles, those that count (a mask) with a border."""

    def draw_on(ax: Axes) -> None:
        ax.imshow(numbers, cmap=plt.get_cmap("PuOr", 9), vmin=-2, vmax=2)
        for (k, l), value in np.ndenumerate(numbers):
            ax.text(l, k, f"{value:.2f}", ha="center", va="center", color=INK)
            box = plt.Rectangle((l - 0.45, k - 0.45), 0.9, 0.9, fill=False, ec=WRONG, lw=2)
            ax.add_patch(box).set_visible(marked[k, l])
        ax.set_title(title, fontsize=10)
        ax.axis("off")

    return draw_on


@figure
def over_rates(scores: Mapping[str, Mapping[float, Sequence[float]]]) -> Axes:
    """Draw the accuracy over the learning rate: a point for each seed, a line through medians."""
    _, ax = plt.subplots(figsize=(7, 3.6))
    for k, (name, color) in enumerate(zip(scores, colors(list(scores)), strict=True)):
        rates, each = np.array(list(scores[name])), np.array(list(scores[name].values()))
        rates *= 1.04 ** (k - 1)  # so that points cover no others
        ax.plot(rates, np.median(each, axis=1), color=color, lw=2, label=name)
        ax.plot(rates, each, "o", color=color, ms=4, alpha=0.6)
    ticks = sorted({rate for each in scores.values() for rate in each})
    ax.set(xscale="log", xlabel="learning rate", ylabel="accuracy on the held-out images")
    ax.set_xticks(ticks, [f"{rate:g}" for rate in ticks])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(scores))
    return ax


def instructions(kernel: Callable, *arguments) -> int:
    """How many a pass of its shortest loop takes that multiplies, compiled for these alone."""
    fresh = numba.njit(kernel.py_func)
    fresh(*arguments)
    return min(machine_code.loops(fresh).items(), default=(0, 0))[1]


def layouts() -> Axes:
    """Draw which numbers share a vector: taps, positions or images (eight)."""
    _, axes = plt.subplots(1, 3, figsize=(8, 2.3))
    lanes = {"taps": (2, 4, 1), "positions": (1, 8, 1), "images": (1, 1, 8)}
    for ax, (name, (rows, columns, n_images)) in zip(axes, lanes.items(), strict=True):
        for n in reversed(range(n_images)):
            for k, l in np.ndindex(4, 8):
                face = WRONG if k < rows and l < columns else "white"
                at = (l + 0.7 * n, k - 0.7 * n)
                ax.add_patch(plt.Rectangle(at, 1, 1, fc=face, ec=INK, lw=0.5))
        ax.add_patch(plt.Rectangle((0, 0), 4, 4, fill=False, ec=INK, lw=2))
        ax.set(xlim=(-0.2, 13.2), ylim=(4.2, -5), aspect="equal")
        ax.set_title(f"lanes: {name}", fontsize=10)
        ax.axis("off")
    return axes[0]


def chains(latency: int = 4, n: int = 8) -> Axes:
    """Draw when n additions of some cycles' latency run: in one chain, and in four."""
    _, axes = plt.subplots(2, 1, figsize=(7, 2.6), sharex=True, height_ratios=(1, 4))
    for ax, k, color in zip(axes, (1, 4), colors(["a", "b"]), strict=True):
        for m in range(n):
            start = m // k * latency + m % k
            ax.barh(f"sum {m % k}", latency, 0.8, start, color=color, ec="white")
            ax.text(start + latency / 2, m % k, f"+{m}", ha="center", va="center", fontsize=8)
        ax.invert_yaxis()
    axes[1].set_xlabel(f"cycles, where an addition takes {latency} and one can begin in each")
    return axes[0]


@figure
def picture(what: str) -> Axes:
    """Draw the `lanes`, which numbers share a vector, or the `chains`, when additions run."""
    return {"lanes": layouts, "chains": chains}[what]()
