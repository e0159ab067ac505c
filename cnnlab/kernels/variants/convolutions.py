"""Convolution as one matrix product: im2col writes the window of every result into a column.

After Chellapilla, Puri and Simard (2006), and Chetlur et al., cuDNN (arXiv 1410.0759). The product
is NumPy's, so that of a BLAS; the loops only copy.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numba
import numpy as np
import scipy.fft

from cnnlab.kernels import pixels


@numba.njit
def unfold(x, columns):
    """Each window of x (N,C,H,W) becomes a column: columns (C,K,K,N,P,Q)."""
    C, K, _, N, P, Q = columns.shape
    for c in range(C):
        for k in range(K):
            for l in range(K):
                for n in range(N):
                    for p in range(P):
                        row, out = x[n, c, p + k], columns[c, k, l, n, p]
                        for q in range(Q):
                            out[q] = row[q + l]


@numba.njit
def fold(columns, dx):
    """The way back, col2im: columns (C,K,K,N,P,Q) are added up in dx (N,C,H,W)."""
    C, K, _, N, P, Q = columns.shape
    dx[:] = 0
    for c in range(C):
        for k in range(K):
            for l in range(K):
                for n in range(N):
                    for p in range(P):
                        row, out = columns[c, k, l, n, p], dx[n, c, p + k]
                        for q in range(Q):
                            out[q + l] += row[q]


def conv_forward_im2col(x, w, b, z):
    """Convolution: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    (N, F, P, Q), (C, K) = z.shape, w.shape[1:3]
    columns = np.empty((C, K, K, N, P, Q), x.dtype)
    unfold(x, columns)
    product = w.reshape(F, C * K * K) @ columns.reshape(C * K * K, N * P * Q)
    z[:] = product.reshape(F, N, P, Q).swapaxes(0, 1)
    z += b[:, None, None]


def conv_backward_weights_im2col(x, dz, dw):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    (N, F, P, Q), (C, K) = dz.shape, dw.shape[1:3]
    columns = np.empty((C, K, K, N, P, Q), x.dtype)
    unfold(x, columns)
    rows = dz.swapaxes(0, 1).reshape(F, N * P * Q)
    dw[:] = (rows @ columns.reshape(C * K * K, N * P * Q).T).reshape(dw.shape)


def conv_backward_input_im2col(dz, w, dx):
    """Gradient with respect to the input: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    (N, F, P, Q), (C, K) = dz.shape, w.shape[1:3]
    rows = dz.swapaxes(0, 1).reshape(F, N * P * Q)
    columns = w.reshape(F, C * K * K).T @ rows
    fold(columns.reshape(C, K, K, N, P, Q), dx)


def workspace(operation, N, C, F, H, W, K):
    """Bytes beside inputs and outputs: the columns, and a transposed copy of z or dz.

    Of a single image or filter NumPy can do without that copy.
    """
    pixels = N * (H - K + 1) * (W - K + 1)
    return 4 * pixels * (C * K * K + F)


# --- convolution by the Fourier transform ---------------------------------------------------------


def spectra(x, size):
    """Transform maps x (N,C,·,·), filled up with zeros to `size`, and put the frequencies first."""
    return np.moveaxis(scipy.fft.rfft2(x, size), (2, 3), (0, 1)).copy()


def maps(spectrum, size):
    """The way back: spectrum (…, …, N, C) → maps (N,C,H,W) of that size."""
    return scipy.fft.irfft2(np.moveaxis(spectrum, (0, 1), (2, 3)), size)


def conv_forward_fft(x, w, b, z):
    """Convolution: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    P, Q = z.shape[2:]
    size = x.shape[2:]
    xs, ws = spectra(x, size), spectra(w, size)
    zs = xs @ np.conj(ws, out=ws).swapaxes(2, 3)  # (N,C) times (C,F), for each frequency
    z[:] = maps(zs, size)[:, :, :P, :Q]
    z += b[:, None, None]


def conv_backward_weights_fft(x, dz, dw):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    K = dw.shape[2]
    size = x.shape[2:]
    xs, zs = spectra(x, size), spectra(dz, size)
    ws = np.conj(zs, out=zs).swapaxes(2, 3) @ xs  # (F,N) times (N,C): dz slides over x
    dw[:] = maps(ws, size)[:, :, :K, :K]


def conv_backward_input_fft(dz, w, dx):
    """Gradient with respect to the input: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    size = dx.shape[2:]
    zs, ws = spectra(dz, size), spectra(w, size)
    dx[:] = maps(zs @ ws, size)  # (N,F) times (F,C): a convolution, so no conjugate


def fourier_workspace(operation, N, C, F, H, W, K):
    """Bytes beside inputs and outputs, at most: spectra of inputs and output, and maps of these.

    A transform of real numbers has W//2 + 1 columns of complex ones; one array is there twice
    while its frequencies are put first.
    """
    inputs = {"conv_forward": (N * C, F * C), "conv_backward_weights": (N * C, N * F)}
    first, second = inputs.get(operation, (N * F, F * C))
    output = N * C + N * F + F * C - first - second
    spectrum, real = 8 * H * (W // 2 + 1), 4 * H * W
    held = first + second
    copying = max(2 * first, first + 2 * second)
    return max(copying * spectrum, (held + output) * spectrum + output * (real + spectrum))


# --- convolution after Winograd: a tile of m × m results from (m + r − 1)² products ---------------

POINTS = [Fraction(0)]
POINTS += [s * Fraction(p) for p in ("1", "2", "1/2", "4", "1/4", "3", "1/3") for s in (1, -1)]


def times(a, b):
    """The product of two polynomials, each a list of coefficients from the constant up."""
    product = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return product


def cook_toom(m, r, points=POINTS):
    """Matrices A (α,m), G (α,r) and B (α,α) of fractions, α = m + r − 1, as lists of rows.

    Aᵀ((G w) ∘ (B x)) are the m results of r taps w on x. B is what others call Bᵀ. The first α − 1
    of `points` are used, and infinity. Raises ValueError if there are fewer.
    """
    alpha = m + r - 1
    finite = points[: alpha - 1]
    if len(finite) < alpha - 1:
        raise ValueError(f"m + r: expected at most {len(points) + 2}, got {m + r}")
    A, G = ([[p**j for j in range(n)] for p in finite] for n in (m, r))
    B, whole = [], functools.reduce(times, ([-p, Fraction(1)] for p in finite), [Fraction(1)])
    for i, p in enumerate(finite):
        others = [q for q in finite if q != p]
        scale = functools.reduce(lambda a, q: a * (p - q), others, Fraction(1))
        G[i] = [g / scale for g in G[i]]
        basis = functools.reduce(times, ([-q, Fraction(1)] for q in others), [Fraction(1)])
        B.append([*basis, Fraction(0)])
    infinity = [[Fraction(0)] * (n - 1) + [Fraction(1)] for n in (m, r)]
    return [*A, infinity[0]], [*G, infinity[1]], [*B, whole]


@functools.cache
def matrices(m, r):
    """A, G and B of F(m, r) in float32, see `cook_toom`; they are not to be written."""
    return tuple(np.array(each, np.float64).astype(np.float32) for each in cook_toom(m, r))


@numba.njit
def cut(x, size, step, down, across):
    """Cut x (N,C,H,W) into tiles that begin `step` apart: (size,size,C,N,down,across).

    Beyond the edge of x a tile is 0.
    """
    N, C, H, W = x.shape
    tiles = np.empty((size, size, C, N, down, across), x.dtype)
    for i in range(size):
        for j in range(size):
            for c in range(C):
                for n in range(N):
                    for p in range(down):
                        row, out = p * step + i, tiles[i, j, c, n, p]
                        for q in range(across):
                            column = q * step + j
                            inside = row < H and column < W
                            out[q] = x[n, c, row, column] if inside else np.float32(0)
    return tiles


@numba.njit
def join(tiles, b, z):
    """Put tiles (m,m,F,N,down,across) side by side and add b (F): z (N,F,P,Q)."""
    m = tiles.shape[0]
    N, F, P, Q = z.shape
    for n in range(N):
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    z[n, f, p, q] = tiles[p % m, q % m, f, n, p // m, q // m] + b[f]


def both(M, tiles):
    """Transform rows and columns of tiles (a,a,…) by M (r,a): (r,r,…)."""
    r, a = M.shape
    rest = tiles.shape[2:]
    tiles = (M @ tiles.reshape(a, -1)).reshape(r, a, -1)
    return (M @ tiles).reshape(r, r, *rest)


def conv_forward_winograd(x, w, b, z, m=4):
    """Convolution: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q), by F(m², K²)."""
    (N, F, P, Q), (C, K) = z.shape, w.shape[1:3]
    A, G, B = matrices(m, K)
    a, down, across = len(B), -(-P // m), -(-Q // m)
    U = both(G, w.transpose(2, 3, 0, 1))
    V = both(B, cut(x, a, m, down, across)).reshape(a, a, C, N * down * across)
    y = both(A.T, U @ V)  # (F,C) times (C,T), for each of the a² products
    join(y.reshape(m, m, F, N, down, across), b, z)


def conv_backward_weights_winograd(x, dz, dw, m=4):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K).

    Each step of the forward pass, transposed.
    """
    (N, F, P, Q), (C, K) = dz.shape, dw.shape[1:3]
    A, G, B = matrices(m, K)
    a, down, across = len(B), -(-P // m), -(-Q // m)
    V = both(B, cut(x, a, m, down, across)).reshape(a, a, C, N * down * across)
    Y = both(A, cut(dz, m, m, down, across)).reshape(a, a, F, N * down * across)
    dw[:] = both(G.T, Y @ V.swapaxes(2, 3)).transpose(2, 3, 0, 1)


def conv_backward_input_winograd(dz, w, dx, m=4):
    """Gradient with respect to the input: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W).

    Forward again: dz with zeros around it, and each kernel turned by half a circle.
    """
    edge = w.shape[2] - 1
    around = np.pad(dz, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    turned = w[:, :, ::-1, ::-1].swapaxes(0, 1)
    conv_forward_winograd(around, turned, np.zeros(len(turned), w.dtype), dx, m)


def winograd_workspace(operation, N, C, F, H, W, K, m=4):
    """Bytes beside inputs and outputs, at most: the transformed arrays and one on its way."""
    a, P, Q, padded = m + K - 1, H - K + 1, W - K + 1, 0
    if operation == "conv_backward_input":
        padded = N * F * (H + K - 1) * (W + K - 1)
        C, F, P, Q = F, C, H, W
    T = N * -(-P // m) * -(-Q // m)
    U, V, M = a * a * F * C, a * a * C * T, a * a * F * T
    if operation == "conv_backward_weights":
        return 4 * max(
            2 * V, V + m * m * F * T + m * a * F * T, V + M + m * a * F * T, V + M + 2 * U
        )
    return 4 * (padded + U + max(2 * V, V + M + M * m // a))


# --- the four ways to convolve, as a list: what lessons 50 and 51 compare and choose from ---------


@dataclass(frozen=True)
class Way:
    """A way to convolve with stride 1: the contract's three operations, and what they need.

    `workspace(operation, N, C, F, H, W, K)` is in bytes, beside inputs and outputs.
    """

    name: str
    conv_forward: Callable
    conv_backward_weights: Callable
    conv_backward_input: Callable
    workspace: Callable[..., int]


def one_row(operation, N, C, F, H, W, K):
    """What `vector` needs beside inputs and outputs: a flat image of results."""
    return 4 * ((H - K) * W + W - K + 9)


_VECTOR = pixels.conv_forward, pixels.conv_backward_weights, pixels.conv_backward_input
_IM2COL = conv_forward_im2col, conv_backward_weights_im2col, conv_backward_input_im2col
_FFT = conv_forward_fft, conv_backward_weights_fft, conv_backward_input_fft
_WINOGRAD = conv_forward_winograd, conv_backward_weights_winograd, conv_backward_input_winograd
WAYS = {
    "vector": Way("vector", *_VECTOR, one_row),
    "im2col": Way("im2col", *_IM2COL, workspace),
    "FFT": Way("FFT", *_FFT, fourier_workspace),
    "Winograd": Way("Winograd", *_WINOGRAD, winograd_workspace),
}
