"""The exercises of lesson 02, the frames of its stepper, and accuracy over rates."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.check.access_log import READ, accesses
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
        winner, rows = np.full(z.shape, -1, np.int8), windows(x, S, P, Q)
        answer(x, z, winner, S)
        if not np.array_equal(z, rows.max(-1)):
            return f"z is not the largest of each window of {S} × {S}"
        if not np.array_equal(winner, rows.argmax(-1)):
            return f"winner is not k · {S} + l of the first of the largest, in {S} × {S}"
    return ""


@kinds.tested(
    not_max,
    "Begin each window with its first element: best = x[n, c, p·stride, q·stride], and winner 0.",
    "Of equal elements the first wins: replace it only where value > best.",
)
@numba.njit
def max_with_winners(x, z, winner, stride=4):
    """Backward then reads 216 bytes for an image in place of the 13,824 of x. They must be kept."""
    for n in range(z.shape[0]):
        for c in range(z.shape[1]):
            for p in range(z.shape[2]):
                for q in range(z.shape[3]):
                    best, at = x[n, c, p * stride, q * stride], 0
                    for k in range(stride):
                        for l in range(stride):
                            value = x[n, c, p * stride + k, q * stride + l]
                            if value > best:
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


def not_in_order(answer: Callable) -> str:
    """What is wrong with a pooling of images side by side that is to read memory in order."""
    for S, C, P, Q, N in ((3, 1, 3, 2, 3), (4, 2, 2, 3, 5)):
        x, w, b, z = draw(C, P * S, Q * S, N), draw(C, S, S), draw(C), np.zeros((C, P, Q, N), "f4")
        answer(x, w, b, z, S)
        rows = windows(x.transpose(3, 0, 1, 2), S, P, Q)
        right = np.einsum("ncpqm,cm->cpqn", rows, w.reshape(C, -1)) + b[:, None, None, None]
        if not np.allclose(z, right):
            return "z is not that of the lesson's kernel"
    log = accesses(answer, x=x, w=w, b=b, z=z)
    read = [position for name, kind, position in log if (name, kind) == ("x", READ)]
    if len(read) != x.size:
        return f"right, but it reads {len(read)} numbers of x, which has {x.size}"
    back = sum(after < before for before, after in pairwise(read))
    return f"right, but it goes back in x {back} times" if back else ""


@kinds.tested(
    not_in_order,
    "x is (C,H,W,N): first c, then a row p · stride + k, then a column q · stride + l, then n.",
    "A row of x belongs to all results of a row of z: set these to the bias, then add tap by tap.",
)
@numba.njit
def in_order(x, w, b, z, stride=4):
    """The prefetcher follows one long run of addresses. The price: a row of results is loaded and
    stored at every tap; but it is small, and stays in the first cache."""
    for c in range(z.shape[0]):
        for p in range(z.shape[1]):
            z[c, p] = b[c]
            for k in range(stride):
                for q in range(z.shape[2]):
                    row = z[c, p, q]
                    for l in range(stride):
                        weight, tap = w[c, k, l], x[c, p * stride + k, q * stride + l]
                        for n in range(row.size):
                            row[n] += weight * tap[n]


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
