"""Convolution by the Fourier transform: a product for each frequency instead of a sum of taps.

After Mathieu, Henaff and LeCun (arXiv 1312.5851). A layer correlates: that is the product with the
conjugate. What goes around the edge of a circular correlation of the image's own size reaches only
results that "valid" leaves out, so nothing is padded beyond the image.
"""

import numpy as np
import scipy.fft


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


def workspace(operation, N, C, F, H, W, K):
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
