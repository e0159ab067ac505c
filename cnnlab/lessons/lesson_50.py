"""The exercises of lesson 50."""

import numpy as np
import scipy.fft

from cnnlab.check import inputs
from cnnlab.check.counting import Counted, Tally
from cnnlab.check.exercises import kinds


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
    rng = np.random.default_rng()
    for _ in range(kinds.FRESH):
        x, w, tally = rng.integers(-9, 10, 4), rng.integers(-9, 10, 3), Tally()
        got = answer([Counted(v, tally) for v in x], [Counted(v, tally) for v in w])
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
