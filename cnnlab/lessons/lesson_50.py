"""The exercises of lesson 50."""

import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log2

import matplotlib.pyplot as plt
import numpy as np
import scipy.fft
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from threadpoolctl import threadpool_limits

from cnnlab.check import inputs, kinds
from cnnlab.kernels import loops
from cnnlab.kernels.variants import convolutions
from cnnlab.kernels.variants.convolutions import WAYS
from cnnlab.measure import timing
from cnnlab.measure.timing import Timing, digits, ratio
from cnnlab.plots.style import GREY, INK, OTHERS, colors, figure, measured, note


def draw_image(rng):
    """The sides of an image, and that of a kernel that fits into it."""
    K = int(rng.integers(1, 12))
    return {"H": K + int(rng.integers(0, 40)), "W": K + int(rng.integers(0, 40)), "K": K}


@kinds.formula(
    draw_image,
    "How many windows are there, and how many pixels does each copy?",
    "A row of the image has W − K + 1 windows; divide by the H · W pixels that there are.",
)
def inflation(H, W, K):
    """25 copies of an inner pixel if K is 5, fewer near the edge: on average 18.4, at 28 × 28."""
    return K * K * (H - K + 1) * (W - K + 1) / (H * W)


def draw_tile(rng):
    """The side of a tile of results, and that of a kernel."""
    return {"m": int(rng.integers(2, 9)), "r": int(rng.integers(2, 8))}


@kinds.formula(
    draw_tile,
    "Leave the transforms out: which products remain for a tile?",
    "One for each of (m + r − 1)² points, where the direct way has r² for each of m² results.",
)
def products_saved(m, r):
    """Four for F(4², 3²); as m grows it tends to r², and rounding ends it long before."""
    return (m * r) ** 2 / (m + r - 1) ** 2


def draw_layer(rng):
    """Channels and filters, and a tile and its kernel."""
    sizes = {"C": int(rng.integers(1, 200)), "F": int(rng.integers(1, 200))}
    return sizes | draw_tile(rng)


@kinds.formula(
    draw_layer,
    "Three terms: each channel's tile is transformed, each pair multiplied, each filter's sum "
    "transformed back.",
    "With a = m + r − 1: BᵀxB is two products of a × a matrices, 2a³; Aᵀ(…)A is m·a·a + m·a·m.",
)
def tile_products(C, F, m, r):
    """Only the middle term has C · F in it: the more maps, the less the transforms weigh."""
    a = m + r - 1
    return C * 2 * a**3 + C * F * a**2 + F * m * a * (a + m)


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


def two_sums(answer):
    """What is wrong with `answer(x, w)`: two sums of three taps on four numbers, by 4 products."""
    rng = kinds.generator()
    for _ in range(kinds.FRESH):
        x, w, tally = rng.integers(-9, 10, 4), rng.integers(-9, 10, 3), Tally()
        got = answer([CountedNumber(v, tally) for v in x], [CountedNumber(v, tally) for v in w])
        expected = [int(w @ x[i : i + 3]) for i in (0, 1)]
        values = [getattr(v, "value", v) for v in got]
        if len(values) != 2 or not np.allclose(values, expected):
            return f"expected {expected} for x={x.tolist()}, w={w.tolist()}, got {values}"
        if tally.products > 4:
            return f"the sums are right, with {tally.products} products of x and w; 4 are enough"
    return ""


@kinds.tested(
    two_sums,
    "Start from m1 = (x[0] − x[2]) · w[0] and m4 = (x[1] − x[3]) · w[2]: two sums need what else?",
    "m2 = (x[1] + x[2]) · (w[0] + w[1] + w[2]) / 2, and m3 likewise with signs changed.",
)
def four_products(x, w):
    """x[1] and x[2] are in both sums: m2 and m3 serve both, and the halves belong to w."""
    m1, m4 = (x[0] - x[2]) * w[0], (x[1] - x[3]) * w[2]
    m2 = (x[1] + x[2]) * ((w[0] + w[1] + w[2]) / 2)
    m3 = (x[2] - x[1]) * ((w[0] - w[1] + w[2]) / 2)
    return [m1 + m2 + m3, m2 - m3 - m4]


# --- numbers that count the multiplications they take part in -------------------------------------


@dataclass
class Tally:
    """Multiplications counted: of two numbers that count, and of one by a constant."""

    products: int = 0
    by_constants: int = 0


class CountedNumber:
    """A number that counts its multiplications in a `tally`, which its results share."""

    __array_ufunc__ = None  # NumPy's numbers leave the product to this one

    def __init__(self, value: float, tally: Tally):
        self.value, self.tally = float(value), tally

    def _with(self, other, operation) -> "CountedNumber":
        return CountedNumber(operation(self.value, getattr(other, "value", other)), self.tally)

    def __mul__(self, other):
        if isinstance(other, CountedNumber):
            self.tally.products += 1
        else:
            self.tally.by_constants += 1
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


# --- work of the ways to convolve: as counted by numbers that count, and as the talk has it -------


def multiplications(function: Callable, *arrays: np.ndarray, **options) -> int:
    """Multiplications that a kernel does on these arrays, the last of which it writes.

    Its products by NumPy are followed as its loops are; a transform by SciPy cannot be. The arrays
    are left as they are. Raises AssertionError if the result is not that of the reference.
    """
    tally = Tally()
    counting = [np.vectorize(lambda v: CountedNumber(v, tally), otypes="O")(a) for a in arrays]
    in_python(function)(*counting, **options)
    z, exact = np.vectorize(lambda v: v.value)(counting[-1]), np.empty(arrays[-1].shape)
    np.testing.assert_allclose(z, direct(arrays, exact), rtol=1e-4, atol=1e-4)
    return tally.products + tally.by_constants


def direct(arrays, exact):
    """The convolution of all but the last of the arrays, in float64."""
    loops.conv_forward(*(a.astype(np.float64) for a in arrays[:-1]), exact)
    return exact


def in_python(function: Callable) -> Callable:
    """The function in plain Python, and so what it calls of its module."""
    plain = getattr(function, "py_func", function)
    names = {n: getattr(v, "py_func", v) for n, v in plain.__globals__.items()}
    return types.FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__)


def inputs(N, C, F, H, W, K, seed=0) -> list[np.ndarray]:
    """Random x, w and b of a layer, and a z to write."""
    rng = np.random.default_rng(seed)
    shapes = (N, C, H, W), (F, C, K, K), (F,), (N, F, H - K + 1, W - K + 1)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def counted(N, C, F, H, W, K, m=4) -> dict[str, int]:
    """Multiplications of each way, by name. Those of the FFT are estimated, see `of_fft`."""
    arrays = inputs(N, C, F, H, W, K)
    result = {
        "direct": multiplications(loops.conv_forward, *arrays),
        "im2col": multiplications(WAYS["im2col"].conv_forward, *arrays),
        "FFT": of_fft(N, C, F, H, W),
        "Winograd": multiplications(WAYS["Winograd"].conv_forward, *arrays, m=m),
    }
    return result


def of_fft(N, C, F, H, W) -> int:
    """Multiplications by FFT: four for each product of spectra, and those of the transforms.

    A transform of n real numbers is taken as 2.5 n log₂ n operations, the convention of FFTW's
    authors, half of them multiplications.
    """
    n = H * W
    products = 4 * H * (W // 2 + 1) * N * C * F
    return products + round(1.25 * n * log2(n) * (N * C + F * C + N * F))


def of_tile(m: int, r: int, filters: int, channels: int = 1) -> dict[str, int]:
    """Multiplications for a tile of F(m², r²): "transforms", "products", "in all"; and "direct".

    The transforms are products of matrices, as in `conv_forward_winograd`: they multiply by zeros
    and ones, too. That of the kernels, once for all tiles, is left out.
    """
    a = m + r - 1
    transforms = channels * 2 * a**3 + filters * (m * a * a + m * m * a)
    products = channels * filters * a * a
    return {
        "transforms": transforms,
        "products": products,
        "in all": transforms + products,
        "direct": channels * filters * m * m * r * r,
    }


def as_printed(N, C, F, H, W, K, m=4, c=1) -> dict[str, tuple[float, int]]:
    """Work and depth in the talk's table, as printed, for square kernels; c is its constant."""
    P, Q, alpha = H - K + 1, W - K + 1, m - K + 1
    tiles, n = N * ceil(H / m) * ceil(W / m), H * W
    sums = rounds(C) + 2 * rounds(K)
    transforms = alpha * (K**2 + alpha * K + 2 * alpha**2 + alpha * m + m**2)
    depth = 2 * rounds(K) + 4 * rounds(alpha) + rounds(C) if alpha > 0 else 0
    return {
        "direct": (N * F * P * Q * C * K * K, sums),
        "im2col": (N * F * P * Q * C * K * K, sums),
        "FFT": (
            c * n * log2(n) * (F * C + N * C + N * F) + n * N * C * F,
            2 * rounds(n) + rounds(C),
        ),
        "Winograd": (transforms + F * C * tiles, depth),
    }


def rounds(n: int) -> int:
    """⌈log₂ n⌉, the rounds in which n numbers are added up in pairs."""
    return ceil(log2(n))


def winograd_errors(m: int, r: int, n: int = 2000, points=convolutions.POINTS) -> float:
    """The largest error of F(m², r²) on n tiles in float32, as a multiple of the direct sum's."""
    rng = np.random.default_rng(0)
    A, G, B = (
        np.array(each, float).astype(np.float32) for each in convolutions.cook_toom(m, r, points)
    )
    x = rng.uniform(-1, 1, (n, len(B), len(B))).astype(np.float32)
    w = rng.uniform(-1, 1, (n, r, r)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (r, r), axis=(1, 2))
    exact = np.einsum("npqkl,nkl->npq", windows.astype(float), w.astype(float))
    plain = np.zeros_like(exact, np.float32)
    for k, l in np.ndindex(r, r):
        plain += windows[..., k, l] * w[:, None, None, k, l]
    fast = A.T @ ((G @ w @ G.T) * (B @ x @ B.T)) @ A
    return float(abs(fast - exact).max() / abs(plain - exact).max())


# --- which way to convolve is fastest where: each timed over the sizes of a layer -----------------

EXACT_TILES = 8  # points of Winograd's transform: with more, float32 loses three digits and more


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

    def __str__(self) -> str:
        return f"N={self.N}, C={self.C}, F={self.F}, H={self.H}, K={self.K}"


def kernels(K: int) -> dict[str, Callable]:
    """The ways for kernels of K × K, by name: Winograd with the largest tile of EXACT_TILES points.

    It is left out where that tile would be a single pixel.
    """
    result, m = {name: way.conv_forward for name, way in WAYS.items()}, EXACT_TILES + 1 - K
    if m < 2:
        return {name: kernel for name, kernel in result.items() if name != "Winograd"}
    return result | {"Winograd": partial(result["Winograd"], m=m)}


def timed(layer: ConvSize, repeats: int = 9) -> dict[str, timing.Timing]:
    """Times of the ways on a layer, on one core; each must first agree with `vector`."""
    *given, z = inputs(layer.N, layer.C, layer.F, layer.H, layer.H, layer.K)
    expected = np.empty_like(z)
    WAYS["vector"].conv_forward(*given, expected)
    algorithms = kernels(layer.K)

    def right(name: str) -> None:
        algorithms[name](*given, z)
        timing.same(z, expected, name=f"{name} at {layer}", rtol=1e-3)

    calls = {name: partial(kernel, *given, z) for name, kernel in algorithms.items()}
    work = 2 * layer.multiply_adds
    with threadpool_limits(1, user_api="blas"):  # NumPy's products take one core, too
        return timing.compare(calls, checks=right, repeats=repeats, work=work)


Panel = Mapping[tuple[int, int], Mapping[str, timing.Timing]]  # (row, column) → way → Timing
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


def sweep(axes=AXES, repeats: int = 9) -> dict[str, Panel]:
    """Times of the ways in every panel of a map."""
    return {
        title: {at: timed(layer, repeats) for at, layer in layers(*both)}
        for title, both in axes.items()
    }


def winner(timings: Mapping[str, timing.Timing]) -> tuple[str, bool]:
    """The fastest way, and whether it is faster than each other over the whole interval.

    The fastest is the one with the largest speedup over the first.
    """
    first = next(iter(timings.values()))
    best = max(timings, key=lambda name: timing.speedup(first, timings[name]).value)
    others = (t for name, t in timings.items() if name != best)
    return best, all(timing.ratio(t, timings[best]).low > 1 for t in others)


# --- pictures of the ways to convolve: im2col's matrix, errors over tiles, and who wins where -----


@figure
def unfolded(image: np.ndarray, kernel: int) -> np.ndarray:
    """Draw an image (H,W) of integers, and the matrix that im2col makes of it.

    A shade stands for a pixel, wherever it is copied to. The first window is framed, as is its
    column.
    """
    H, W = image.shape
    P, Q = H - kernel + 1, W - kernel + 1
    columns = np.empty((1, kernel, kernel, 1, P, Q), np.float32)
    convolutions.unfold(image[None, None].astype(np.float32), columns)
    matrix = columns.reshape(kernel**2, P * Q)
    size = {"figsize": (9, 3.4), "width_ratios": (W, 1.6 * P * Q)}
    _, axes = plt.subplots(1, 2, **size)
    for ax, array in zip(axes, (image, matrix), strict=True):
        ax.imshow(array, cmap="cividis", alpha=0.55)
        for (i, j), value in np.ndenumerate(array):
            ax.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=8, color=INK)
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
    look = {"fill": False, "edgecolor": INK, "linewidth": 2.5, "clip_on": False}
    axes[0].add_patch(plt.Rectangle((-0.5, -0.5), kernel, kernel, **look))
    axes[1].add_patch(plt.Rectangle((-0.5, -0.5), 1, kernel**2, **look))
    axes[0].set_title(f"the image: {image.size} pixels", fontsize=10)
    axes[1].set_title(f"its matrix: {matrix.size} numbers", fontsize=10)
    axes[0].set(xlabel="column", ylabel="row")
    axes[1].set(xlabel=f"one column for each of {P} × {Q} results", ylabel="one row for each tap")
    return axes


@figure
def errors(result: Mapping[int, Mapping[int, float]]) -> Axes:
    """Draw Winograd's largest error over the tile, as a multiple of the direct sum's.

    `found[r][m]` is that of F(m², r²).
    """
    _, ax = plt.subplots(figsize=(7, 3.6))
    for (r, by_tile), color in zip(result.items(), OTHERS, strict=False):
        sizes = list(by_tile)
        ax.plot(sizes, list(by_tile.values()), "-o", color=color, label=f"kernels of {r} × {r}")
        last = (sizes[-1], by_tile[sizes[-1]])
        note(ax, f"{last[1]:,.0f}", last, (6, 0), va="center", fontsize=8)
    ax.axhline(1, color=GREY, linestyle="--", linewidth=1.2)
    note(ax, "direct", (min(map(min, result.values())), 1), (0, -11), color=GREY, fontsize=8)
    ax.set(xlabel="tile: m × m results", ylabel="times the direct sum's error", yscale="log")
    ax.set_ylim(0.4, None)
    ax.legend(frameon=False)
    return ax


@measured
def winners(
    panels: Mapping[str, Mapping[tuple[int, int], Mapping[str, Timing]]],
    axes: Mapping[str, Sequence] = AXES,
) -> np.ndarray:
    """Draw the fastest way for each layer, and how many times faster it is than `vector`.

    `panels` are those of `bench.way_map.sweep`. Pale is a lead that this run cannot tell from none.
    """
    _, drawn = plt.subplots(1, len(panels), figsize=(4.1 * len(panels), 4.2), squeeze=False)
    base, inks = next(iter(WAYS)), dict(zip(WAYS, colors(list(WAYS)), strict=True))
    for ax, (title, panel) in zip(drawn[0], panels.items(), strict=True):
        (down, rows), (across, columns) = (next(iter(side.items())) for side in axes[title])
        for (i, j), timings in panel.items():
            best, sure = winner(timings)
            y, x = rows.index(i), columns.index(j)
            look = {"color": inks[best], "alpha": 0.8 if sure else 0.3, "lw": 0}
            ax.add_patch(plt.Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, **look))
            gain = ratio(timings[base], timings[best]).value
            text = best if best == base else f"{best}\n{digits(gain)}×"
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
