"""Lesson 50, four ways to convolve: its layers, their times, drawings, and the exercises."""

import operator
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from statistics import median

import matplotlib.pyplot as plt
import numpy as np
import scipy.fft
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from cnnlab.check import inputs, kinds, operation
from cnnlab.measure import timing
from cnnlab.plots import stepper
from cnnlab.plots.style import GREY, INK, OTHERS, WAY_COLORS, colors, figure, measured, note
from cnnlab.runtime.failures import few

# --- layers, and what a way to convolve takes on them ---------------------------------------------


@dataclass(frozen=True)
class ConvSize:
    """A convolution: N images of H × H with C channels, F filters of K × K."""

    N: int = 8
    C: int = 16
    F: int = 16
    H: int = 28
    K: int = 5

    @property
    def multiply_adds(self) -> int:
        """Those of the direct way."""
        return self.N * self.F * self.C * (self.H - self.K + 1) ** 2 * self.K**2

    def arrays(self) -> list[np.ndarray]:
        """Random x, w and b, and a z to write."""
        N, C, F, H, K = self.N, self.C, self.F, self.H, self.K
        rng, P = np.random.default_rng(0), H - K + 1
        shapes = (N, C, H, H), (F, C, K, K), (F,), (N, F, P, P)
        return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]

    def __str__(self) -> str:
        return f"N={self.N}, C={self.C}, F={self.F}, H={self.H}, K={self.K}"


def checked(kernels: Mapping[str, Callable], layer: ConvSize) -> list[np.ndarray]:
    """The arrays of a layer. Raises AssertionError where a kernel does not agree with the first."""
    *given, z = layer.arrays()
    expected = np.empty_like(z)
    next(iter(kernels.values()))(*given, expected)
    for name, kernel in kernels.items():
        kernel(*given, z)
        timing.same(z, expected, name=f"{name} at {layer}", rtol=1e-3)
    return [*given, z]


def stages(kernels: Mapping[str, Callable], layer: ConvSize, repeats: int = 15) -> dict:
    """Median seconds of each stage of kernels on a layer, run in turn: name → stage → seconds."""
    given = checked(kernels, layer)
    seen: dict[str, dict] = {name: {} for name in kernels}
    for _ in range(few(repeats)):
        for name, kernel in kernels.items():
            clock = [time.perf_counter()]

            def lap(stage: str, clock=clock, samples=seen[name]) -> None:
                samples.setdefault(stage, []).append(time.perf_counter() - clock[0])
                clock[0] = time.perf_counter()

            kernel(*given, lap=lap)
    return {name: {s: median(t) for s, t in each.items()} for name, each in seen.items()}


def error(matrices: Sequence, n: int = 2000) -> float:
    """The largest error of F(m², r²) in float32 by A, G and B, over that of the direct sum."""
    rng = np.random.default_rng(0)
    A, G, B = (np.array(each, float).astype(np.float32) for each in matrices)
    a, r = G.shape
    x = rng.uniform(-1, 1, (n, a, a)).astype(np.float32)
    w = rng.uniform(-1, 1, (n, r, r)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (r, r), axis=(1, 2))
    exact = np.einsum("npqkl,nkl->npq", windows.astype(float), w.astype(float))
    plain = np.zeros_like(exact, np.float32)
    for k, l in np.ndindex(r, r):
        plain += windows[..., k, l] * w[:, None, None, k, l]
    fast = A.T @ ((G @ w @ G.T) * (B @ x @ B.T)) @ A
    return float(abs(fast - exact).max() / abs(plain - exact).max())


AXES = {  # panel → its rows and columns: the sizes that they change, and to what
    "channels and filters": ({"F": (1, 4, 16, 64)}, {"C": (1, 4, 16, 64)}),
    "kernel and channels": ({"K": (3, 5, 7, 9, 13)}, {"CF": (1, 4, 16, 64)}),
    "image and batch": ({"H": (8, 14, 20, 28)}, {"N": (1, 4, 16, 64)}),
}


def layers(rows: Mapping[str, Sequence[int]], columns: Mapping[str, Sequence[int]]) -> Iterator:
    """Yield (row, column), ConvSize for each pair of sizes; the others are those of `ConvSize`."""
    ((down, sizes),), ((across, others),) = rows.items(), columns.items()
    for i in sizes:
        for j in others:
            changed = dict.fromkeys(down, i) | dict.fromkeys(across, j)
            yield (i, j), replace(ConvSize(), **changed)


def sweep(algorithms: Callable[[int], Mapping[str, Callable]], repeats: int = 9) -> dict:
    """Times in every panel of the map, by (row, column); `algorithms(K)` has kernels by name."""
    panels: dict[str, dict] = {}
    for title, sides in AXES.items():
        for at, layer in layers(*sides):
            kernels = algorithms(layer.K)
            given = checked(kernels, layer)
            calls = {name: partial(kernel, *given) for name, kernel in kernels.items()}
            panels.setdefault(title, {})[at] = timing.compare(calls, repeats=repeats)
    return panels


def winner(timings: Mapping[str, timing.Timing]) -> tuple[str, bool]:
    """The fastest way, and whether it is faster than each other over the whole interval.

    The fastest is the one with the largest speedup over the first.
    """
    first = next(iter(timings.values()))
    best = max(timings, key=lambda name: timing.speedup(first, timings[name]).value)
    others = (t for name, t in timings.items() if name != best)
    return best, all(timing.ratio(t, timings[best]).low > 1 for t in others)


# --- pictures -------------------------------------------------------------------------------------


def unfolding(image: np.ndarray, matrix: np.ndarray, pixel: int) -> stepper.Stepper:
    """Step through im2col: a frame for each window of an image (H,W), and a column of its matrix.

    `pixel` is a number in the image; its copies light up.
    """
    (H, W), (rows, columns) = image.shape, matrix.shape
    K = round(rows**0.5)
    look = {"fill": False, "edgecolor": INK, "linewidth": 2.5, "clip_on": False}

    def draw(k: int, ax: Axes) -> None:
        p, q = divmod(k, W - K + 1)
        corners = (((q - 0.5, p - 0.5), K, K), ((W + k + 0.5, -0.5), 1, rows))
        for left, array, n in ((0, image, W), (W + 1, matrix, k + 1)):
            for (i, j), value in np.ndenumerate(array[:, :n]):
                color = WAY_COLORS["im2col"] if value == pixel else "#e8e8e8"
                ax.add_patch(
                    plt.Rectangle((left + j - 0.45, i - 0.45), 0.9, 0.9, color=color, lw=0)
                )
                ax.text(left + j, i, f"{value:.0f}", ha="center", va="center", fontsize=9)
        for at, wide, high in corners:
            ax.add_patch(plt.Rectangle(at, wide, high, **look))
        ax.set(xlim=(-0.6, W + columns + 0.6), ylim=(max(H, rows) - 0.4, -0.6), aspect="equal")
        ax.axis("off")

    copies = np.cumsum((matrix == pixel).sum(0))
    captions = [
        f"Window {k + 1} is column {k + 1}: {rows * (k + 1)} numbers so far, pixel {pixel} "
        f"copied {n} times."
        for k, n in enumerate(copies)
    ]
    title = f"{image.size} pixels become {matrix.size} numbers"
    frames = [partial(draw, k) for k in range(columns)]
    return stepper.stepper(frames, title=title, captions=captions)


@figure
def data_flow() -> Axes:
    """Draw F(2, 3) as a graph: differences and sums of x, four products, two results."""
    _, ax = plt.subplots(figsize=(8, 3))
    inks = (*WAY_COLORS.values(), OTHERS[0])
    terms = (("x₀ − x₂", "w₀", (0, 2), (0,)), ("x₁ + x₂", "½(w₀ + w₁ + w₂)", (1, 2), (0, 1)))
    terms += (("x₂ − x₁", "½(w₀ − w₁ + w₂)", (1, 2), (0, 1)), ("x₁ − x₃", "w₂", (1, 3), (1,)))
    for k, ((of_x, of_w, reads, writes), ink) in enumerate(zip(terms, inks, strict=True)):
        look = {"color": ink, "linewidth": 1.5}
        for i in reads:
            ax.plot([0.15, 1], [-i, -k], **look)
        for i in writes:
            ax.plot([3.2, 3.9], [-k, -1 - i], **look)
        box = plt.Rectangle((1, -k - 0.3), 2.2, 0.6, fc="white", ec=ink, lw=2, zorder=2)
        ax.add_patch(box)
        ax.text(2.1, -k, f"m{'₁₂₃₄'[k]} = ({of_x}) · {of_w}", ha="center", va="center", fontsize=10)
        ax.text(0, -k, f"x{'₀₁₂₃'[k]}", ha="center", va="center", fontsize=12)
    for k, text in enumerate(("z₀ = m₁ + m₂ + m₃", "z₁ = m₂ − m₃ − m₄")):
        ax.text(3.95, -1 - k, text, va="center", fontsize=11)
    ax.set(xlim=(-0.2, 5.2), ylim=(-3.5, 0.5))
    ax.axis("off")
    return ax


def errors(matrices: Mapping[str, Mapping[int, Sequence]], title: str) -> dict[str, dict]:
    """Draw Winograd's largest error over the tile, over the direct sum's, and return it.

    `matrices[name][m]` are A, G and B for tiles of m × m.
    """
    result = {name: {m: error(M) for m, M in each.items()} for name, each in matrices.items()}
    over_tiles(result, title=title)
    return result


@figure
def over_tiles(result: Mapping[str, Mapping[int, float]]) -> Axes:
    """Draw errors over the tile, by name."""
    _, ax = plt.subplots(figsize=(7, 3.6))
    for k, (name, by_tile) in enumerate(result.items()):
        look = {"color": OTHERS[k // 2], "linestyle": ("-", "--")[k % 2], "marker": "o"}
        ax.plot(list(by_tile), list(by_tile.values()), label=name, markersize=4, **look)
    ax.axhline(1, color=GREY, linestyle=":", linewidth=1.2)
    note(ax, "direct", (min(map(min, result.values())), 1), (0, -11), color=GREY, fontsize=8)
    ax.set(xlabel="tile: m × m results", ylabel="times the direct sum's error", yscale="log")
    ax.set_ylim(0.4, None)
    ax.legend(frameon=False, fontsize=9)
    return ax


def winners(panels: Mapping[str, Mapping[tuple[int, int], Mapping]]) -> None:
    """Draw the fastest of the algorithms for each layer, and print how often each leads."""
    best = Counter(winner(timings)[0] for panel in panels.values() for timings in panel.values())
    drawn_map(panels, title=f"The fastest in {best.total()} cells")
    print("fastest on", ", ".join(f"{name} {n}" for name, n in best.most_common()))


@measured
def drawn_map(panels: Mapping[str, Mapping[tuple[int, int], Mapping]]) -> np.ndarray:
    """Draw the fastest way for each layer, and how many times faster it is than the first way.

    `panels` are those of `sweep`. Pale is a lead that this run cannot tell from none.
    """
    _, drawn = plt.subplots(1, len(panels), figsize=(4.1 * len(panels), 4.2), squeeze=False)
    names = list(dict.fromkeys(n for panel in panels.values() for t in panel.values() for n in t))
    inks = dict(zip(names, colors(names), strict=True))
    for ax, (title, panel) in zip(drawn[0], panels.items(), strict=True):
        (down, rows), (across, columns) = (next(iter(side.items())) for side in AXES[title])
        for (i, j), timings in panel.items():
            best, sure = winner(timings)
            y, x = rows.index(i), columns.index(j)
            look = {"color": inks[best], "alpha": 0.8 if sure else 0.3, "lw": 0}
            ax.add_patch(plt.Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, **look))
            gain = timing.ratio(timings[names[0]], timings[best]).value
            text = best if best == names[0] else f"{best}\n{timing.digits(gain)}×"
            ax.text(x, y, text, ha="center", va="center", fontsize=8, color=INK)
        ax.set_title(title, fontsize=10)
        ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(rows) - 0.5))
        ax.set_xticks(range(len(columns)), columns)
        ax.set_yticks(range(len(rows)), rows)
        ax.set(xlabel=LABELS[across], ylabel=LABELS[down])
        ax.grid(visible=False)
    patches = [Patch(color=ink, label=name) for name, ink in inks.items()]
    drawn[0, 0].figure.legend(handles=patches, ncols=4, loc="outside upper right", frameon=False)
    return drawn[0]


LABELS = {
    "C": "C, channels", "F": "F, filters", "CF": "C = F, channels and filters",
    "K": "K, kernel", "H": "H, image", "N": "N, batch",
}  # fmt: skip

# --- the exercises --------------------------------------------------------------------------------


@kinds.kernel(
    "conv_backward_weights",
    "Which two matrices have a side of N · P · Q, and which sum runs over it?",
    "dz as F rows of N · P · Q numbers, times the transposed columns: F rows of C · K · K.",
    cases=inputs.STRIDE_ONE,
)
def weights_by_im2col(x, dz, dw):
    """The sum over images and positions is the product's own; the columns are those of forward."""
    N, F, P, Q = dz.shape
    K = dw.shape[2]
    windows = np.lib.stride_tricks.sliding_window_view(x, (K, K), axis=(2, 3))  # N C P Q K K
    columns = windows.transpose(1, 4, 5, 0, 2, 3).reshape(-1, N * P * Q)
    rows = dz.swapaxes(0, 1).reshape(F, N * P * Q)
    dw[:] = (rows @ columns.T).reshape(dw.shape)


@kinds.kernel(
    "conv_backward_input",
    "Each dz is spread over its window: a convolution, where forward was a correlation.",
    "Nothing is conjugated, and the sum runs over f. The result, P + K − 1 = H rows, just fits.",
    cases=inputs.TRANSFORMED,
    normwise=1,
)
def input_by_fft(dz, w, dx):
    """All of the H × W results are wanted, and nothing goes around: P + K − 1 is H."""
    size = dx.shape[2:]
    zs, ws = scipy.fft.rfft2(dz, size), scipy.fft.rfft2(w, size)
    dx[:] = scipy.fft.irfft2(np.einsum("nfij,fcij->ncij", zs, ws), size)


class CountedNumber:
    """A number that notes its products with others of its kind in a list, which results share."""

    def __init__(self, value: float, tally: list):
        self.value, self.tally = float(value), tally

    def _with(self, other, operation) -> "CountedNumber":
        return CountedNumber(operation(self.value, getattr(other, "value", other)), self.tally)

    def __mul__(self, other):
        if isinstance(other, CountedNumber):
            self.tally.append((self, other))
        return self._with(other, operator.mul)

    def __add__(self, other):
        return self._with(other, operator.add)

    def __sub__(self, other):
        return self._with(other, operator.sub)

    def __rsub__(self, other):
        return -self + other

    def __neg__(self):
        return CountedNumber(-self.value, self.tally)

    def __truediv__(self, constant):
        return self * (1 / constant)

    __rmul__, __radd__ = __mul__, __add__


def three_sums(answer):
    """What is wrong with `answer(x, w)`: three sums of two taps on four numbers, by 4 products."""
    rng = kinds.generator()
    for _ in range(kinds.FRESH):
        x, w, tally = rng.integers(-9, 10, 4), rng.integers(-9, 10, 2), []
        got = answer([CountedNumber(v, tally) for v in x], [CountedNumber(v, tally) for v in w])
        expected = [int(w @ x[i : i + 2]) for i in range(3)]
        values = [getattr(v, "value", v) for v in got]
        if len(values) != 3 or not np.allclose(values, expected):
            return f"expected {expected} for x={x.tolist()}, w={w.tolist()}, got {values}"
        if len(tally) > 4:
            return f"the sums are right, with {len(tally)} products of x and w; 4 are enough"
    return ""


@kinds.tested(
    three_sums,
    "Which matrices does cook_toom(3, 2) give? A row of G combines w, one of B combines x.",
    "m1 = (x[0] − x[2]) · w[0], m4 = (x[3] − x[1]) · w[1]; two have halves of w[0] ± w[1].",
)
def four_products(x, w):
    """The rows of cook_toom(3, 2), written out: m2 and m3 serve all three results."""
    m1, m4 = (x[0] - x[2]) * w[0], (x[3] - x[1]) * w[1]
    m2 = (x[1] + x[2]) * ((w[0] + w[1]) / 2)
    m3 = (x[2] - x[1]) * ((w[0] - w[1]) / 2)
    return [m1 + m2 + m3, m2 - m3, m2 + m3 + m4]


def in_tiles(operation_name: str, function: Callable, **options):
    """The verdict on a kernel, and on the most bytes that it allocates for many images."""
    verdict = operation.kernel(operation_name, function, **options)
    if verdict:
        given = ConvSize(N=64, C=4, F=6).arrays()
        tracemalloc.start()
        function(*given)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if most > 64 * 1024:
            text = f"{operation_name}: right, with {most / 1024:,.0f} KiB of workspace; at most 64"
            return replace(verdict, passed=False, text=text)
    return verdict


@kinds.kernel(
    "conv_forward",
    "Unfold one row of results of one image: (C K K, Q) numbers. What is it multiplied by?",
    "The weights as F rows of C K K, times these columns: all F results of that row.",
    cases=inputs.STRIDE_ONE,
    by=in_tiles,
)
def implicit_gemm(x, w, b, z):
    """A row of results at a time: its columns are C K K × Q numbers, not C K K × P Q."""
    N, F, P, Q = z.shape
    C, K = w.shape[1:3]
    windows = np.lib.stride_tricks.sliding_window_view(x, (K, K), axis=(2, 3))  # N C P Q K K
    rows = w.reshape(F, C * K * K)
    for n in range(N):
        for p in range(P):
            columns = windows[n, :, p].transpose(0, 2, 3, 1).reshape(C * K * K, Q)
            z[n, :, p] = rows @ columns + b[:, None]


def numeric(points: Sequence, r: int = 5) -> tuple[np.ndarray, ...]:
    """A, G and B of F(m, r) in float64, from finite points alone and infinity."""
    t = np.array([float(p) for p in points])
    A, G = (np.vander(t, n, increasing=True) for n in (len(t) + 2 - r, r))
    others = [np.delete(t, i) for i in range(len(t))]
    G = G / np.array([[np.prod(p - rest)] for p, rest in zip(t, others, strict=True)])
    B = [[*np.poly(rest)[::-1], 0] for rest in others] + [np.poly(t)[::-1]]
    last = [np.eye(1, M.shape[1], M.shape[1] - 1) for M in (A, G)]
    return np.vstack([A, last[0]]), np.vstack([G, last[1]]), np.array(B)


def try_points(answer: Callable) -> str:
    """What is wrong with eleven points for F(8², 5²)."""
    points = [Fraction(p) for p in answer()]
    if len({*points}) != 11 or len(points) != 11:
        return f"expected eleven different points, got {len({*points})}"
    mine, first = error(numeric(points)), error(numeric(FIRST))
    if mine > first / 2:
        return f"they err {mine / first:.2g} times as much as the first eleven of POINTS"
    return ""


FIRST = [Fraction(p) for p in ("0", "1", "-1", "2", "-2", "1/2", "-1/2", "4", "-4", "1/4", "-1/4")]


@kinds.tested(
    try_points,
    "Which of the eleven make the largest powers? Look for others near 1, in pairs ±p.",
    "A point and its reciprocal balance each other: ±2 and ±½. What might stand between?",
)
def better_points():
    """±¾ and its reciprocal keep powers near 1; those of 4 grow fast."""
    pairs = [Fraction(p) for p in ("1", "2", "1/2", "3/4", "4/3")]
    return [Fraction(0), *pairs, *(-p for p in pairs)]


@kinds.choice(
    ["the conjugate", "zeros around the image", "the size, given to irfft2", "float64"],
    "Of how many real numbers is a spectrum of 14 complex columns? There are two answers.",
    "27 and 26 numbers both have 14 columns; irfft2 must be told.",
)
def what_is_missing():
    """26 and 27 numbers both have 14 columns; irfft2 supposes 2 (14 − 1) if nothing is said."""
    return "the size, given to irfft2"
