"""The exercises of lesson 02, the frames of its stepper, and accuracy over rates."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import numba
import numpy as np
from matplotlib.axes import Axes

from cnnlab import measure
from cnnlab.check import kinds
from cnnlab.check.access_log import READ, accesses
from cnnlab.check.inputs import generator
from cnnlab.plots.style import INK, WRONG, colors, figure

FASTER = 1.3  # times, that a kernel which knows its size must be; here it is about twice as fast


def windows(x: np.ndarray, size: int) -> np.ndarray:
    """The windows of x (N,C,H,W), side by side, as rows (N,C,P,Q,size²)."""
    N, C, P, Q = (*x.shape[:2], x.shape[2] // size, x.shape[3] // size)
    cut = x[:, :, : P * size, : Q * size].reshape(N, C, P, size, Q, size)
    return cut.transpose(0, 1, 2, 4, 3, 5).reshape(N, C, P, Q, size**2)


def not_max(answer: Callable) -> str:
    """What is wrong with a max pooling that keeps its winners."""
    for size, shape in ((4, (2, 3, 8, 12)), (2, (1, 2, 7, 6)), (3, (3, 1, 9, 3))):
        x = (generator().integers(-9, 0, shape) / 8).astype(np.float32)  # below zero, with ties
        rows = windows(x, size)
        z, winner = (
            np.full(rows.shape[:4], np.nan, np.float32),
            np.full(rows.shape[:4], -1, np.int8),
        )
        answer(x, z, winner, size)
        if not np.array_equal(z, rows.max(-1)):
            return f"z is not the largest of each window of {size} × {size}"
        if not np.array_equal(winner, rows.argmax(-1)):
            return f"winner is not k · {size} + l of the first of the largest, in {size} × {size}"
    return ""


@kinds.tested(
    not_max,
    "Begin each window with its first element: best = x[n, c, p·stride, q·stride], and winner 0.",
    "Of equal elements the first wins: replace it where value > best, and by nothing else.",
)
@numba.njit
def max_with_winners(x, z, winner, stride=4):
    """The backward pass then writes dz at the winner, and need not look at x again."""
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


@kinds.number(
    "Count what is read, of one image: x has 6 × 24 × 24 float32, dz has 6 × 6 × 6, so has winner.",
    "(13,824 + 864) bytes against (216 + 864).",
    rtol=1e-2,
)
def fewer_bytes():
    """A byte a window in place of the 64 bytes of its numbers; and it must be written once."""
    return (4 * 6 * 24 * 24 + 4 * 6 * 6 * 6) / (6 * 6 * 6 + 4 * 6 * 6 * 6)


@numba.njit
def average_of_any_size(x, z, stride=4):
    """The kernel to beat: the size of its windows is a number that it learns in each call."""
    share = np.float32(1) / np.float32(stride * stride)
    for n in range(z.shape[0]):
        for c in range(z.shape[1]):
            for p in range(z.shape[2]):
                for q in range(z.shape[3]):
                    total = np.float32(0)
                    for k in range(stride):
                        for l in range(stride):
                            total += x[n, c, p * stride + k, q * stride + l]
                    z[n, c, p, q] = share * total


def not_specialised(answer: Callable) -> str:
    """What is wrong with a function that makes average pooling for windows of one size."""
    for size in (1, 2, 3, 5, 4):
        x = generator().random((32, 6, 6 * size, 6 * size), np.float32)
        kernel, z = answer(size), np.full((32, 6, 6, 6), np.nan, np.float32)
        kernel(x, z)
        if not np.allclose(z, windows(x, size).mean(-1), rtol=1e-5):
            return f"for windows of {size} × {size}, z is not their mean"
    calls = {"any": lambda: average_of_any_size(x, z, 4), "four": lambda: kernel(x, z)}
    for _ in range(3):  # another process may be in the way
        timings = measure.compare(calls, repeats=15)
        gain = measure.speedup(timings["any"], timings["four"]).value
        if gain >= FASTER:
            return ""
    return f"right, but {gain:.2f} times as fast as range(stride); wanted: {FASTER} times"


@kinds.tested(
    not_specialised,
    "A function that Numba compiles takes a number from around it as a constant.",
    "Define the kernel inside of the function, with range(size), and return it.",
)
def specialised(size):
    """A number from an outer function is a constant to Numba: each size has its own machine code,
    in which the loops over the window are unrolled. Compiling took time, once."""
    share = np.float32(1 / size**2)

    @numba.njit
    def kernel(x, z):
        for n in range(z.shape[0]):
            for c in range(z.shape[1]):
                for p in range(z.shape[2]):
                    for q in range(z.shape[3]):
                        total = np.float32(0)
                        for k in range(size):
                            for l in range(size):
                                total += x[n, c, p * size + k, q * size + l]
                        z[n, c, p, q] = share * total

    return kernel


def not_the_layer(answer: Callable) -> str:
    """What is wrong with one thread of the report's pooling."""
    x, w = (generator().uniform(-1, 1, shape) for shape in ((24, 24), (4, 4)))
    for p, q in ((0, 0), (1, 0), (2, 5), (5, 5)):
        right = 0.5 + (x[4 * p : 4 * p + 4, 4 * q : 4 * q + 4] * w).sum()
        if not np.isclose(answer(x, w, 0.5, p, q), right):
            return f"expected {right:.4f} at p={p}, q={q}, got {answer(x, w, 0.5, p, q):.4f}"
    return ""


@kinds.tested(
    not_the_layer,
    "The first window would be right with a sum. What is a sum called that starts at −∞?",
    "Six windows of a map begin at rows 0, 4, …, 20. Where do those of the listing begin?",
)
def repaired(x, w, b, p, q):
    """A sum, not a maximum; and windows 4 apart: by 2, no window reads rows 14 to 23."""
    total = b
    for i in range(4):
        for j in range(4):
            total += x[4 * p + i, 4 * q + j] * w[i, j]
    return total


def not_in_order(answer: Callable) -> str:
    """What is wrong with a pooling of images side by side that is to read memory in order."""
    for C, P, Q, N, size in ((1, 3, 2, 3, 2), (2, 2, 3, 5, 4)):
        numbers = (C, P * size, Q * size, N), (C, size, size), (C,)
        x, w, b = (generator().uniform(-1, 1, s).astype(np.float32) for s in numbers)
        z = np.full((C, P, Q, N), np.nan, np.float32)
        answer(x, w, b, z, size)
        cut = windows(x.transpose(3, 0, 1, 2), size).transpose(1, 2, 3, 4, 0)
        right = b[:, None, None, None] + (cut * w.reshape(C, 1, 1, -1, 1)).sum(3)
        if not np.allclose(z, right, atol=1e-5):
            return "z is not that of the lesson's kernel"
    log = accesses(getattr(answer, "py_func", answer), x=x, w=w, b=b, z=z)
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


# --- drawings -------------------------------------------------------------------------------------


def tiles(numbers: np.ndarray, title: str, marked: np.ndarray) -> Callable[[Axes], None]:
    """A frame: a window's numbers (K,K) in tiles, those that count (a mask) with a frame."""

    def draw(ax: Axes) -> None:
        ax.imshow(numbers, cmap="PuOr", vmin=-1.6, vmax=1.6)
        for (k, l), value in np.ndenumerate(numbers):
            ax.text(l, k, f"{value:.2f}", ha="center", va="center", color=INK, fontsize=9)
            if marked[k, l]:
                corner = l - 0.46, k - 0.46
                ax.add_patch(plt.Rectangle(corner, 0.92, 0.92, fill=False, ec=WRONG, lw=2))
        ax.set_title(title, fontsize=10)
        ax.axis("off")

    return draw


@figure
def over_rates(scores: Mapping[str, Mapping[float, Sequence[float]]]) -> Axes:
    """Draw the accuracy over the learning rate: a point for each seed, a line through medians."""
    _, ax = plt.subplots(figsize=(7, 3.6))
    for k, (name, color) in enumerate(zip(scores, colors(list(scores)), strict=True)):
        rates = np.array(list(scores[name]))
        middle = [np.median(each) for each in scores[name].values()]
        ax.plot(rates * 1.04 ** (k - 1), middle, "-", color=color, lw=2, label=name)
        for rate, each in scores[name].items():
            ax.plot([rate * 1.04 ** (k - 1)] * len(each), each, "o", color=color, ms=4, alpha=0.6)
    rates = sorted({rate for each in scores.values() for rate in each})
    ax.set(xscale="log", xlabel="learning rate", ylabel="accuracy on the held-out images")
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.locator_params(axis="y", steps=(1, 2, 5, 10))
    ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(scores))
    return ax
