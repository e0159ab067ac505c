"""Work of the ways to convolve: as counted by numbers that count, and as the talk has it."""

import types
from collections.abc import Callable
from math import ceil, log2

import numpy as np

from cnnlab.check.counting import Counted, Tally
from cnnlab.kernels import loops
from cnnlab.kernels.variants import winograd
from cnnlab.kernels.variants.four_ways import WAYS


def multiplications(function: Callable, *arrays: np.ndarray, **options) -> int:
    """Multiplications that a kernel does on these arrays, the last of which it writes.

    Its products by NumPy are followed as its loops are; a transform by SciPy cannot be. The arrays
    are left as they are. Raises AssertionError if the result is not that of the reference.
    """
    tally = Tally()
    counting = [np.vectorize(lambda v: Counted(v, tally), otypes="O")(a) for a in arrays]
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
    found = {
        "direct": multiplications(loops.conv_forward, *arrays),
        "im2col": multiplications(WAYS["im2col"].conv_forward, *arrays),
        "FFT": of_fft(N, C, F, H, W),
        "Winograd": multiplications(WAYS["Winograd"].conv_forward, *arrays, m=m),
    }
    return found


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


def winograd_errors(m: int, r: int, n: int = 2000, points=winograd.POINTS) -> float:
    """The largest error of F(m², r²) on n tiles in float32, as a multiple of the direct sum's."""
    rng = np.random.default_rng(0)
    A, G, B = (
        np.array(each, float).astype(np.float32) for each in winograd.cook_toom(m, r, points)
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
