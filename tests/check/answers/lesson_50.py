"""Answers to the exercises of lesson 50: right ones, and wrong ones with a word of the verdict."""

import numpy as np
import scipy.fft

from cnnlab.kernels.variants.convolutions import unfold
from cnnlab.lessons.lesson_50 import (
    four_products,
    inflation,
    input_by_fft,
    products_saved,
    tile_products,
    weights_by_im2col,
)


def weights(x, dz, dw, rows=lambda dz: dz.swapaxes(0, 1)):
    N, F, P, Q = dz.shape
    C, K = dw.shape[1:3]
    columns = np.empty((C, K, K, N, P, Q), x.dtype)
    unfold(x, columns)
    dw[:] = (rows(dz).reshape(F, -1) @ columns.reshape(C * K * K, -1).T).reshape(dw.shape)


def images_not_swapped(x, dz, dw):
    weights(x, dz, dw, rows=lambda dz: dz)


def by_fft(dz, w, dx, size=None, spectrum=lambda ws: ws):
    size = size or dx.shape[2:]
    zs, ws = scipy.fft.rfft2(dz, size), spectrum(scipy.fft.rfft2(w, size))
    dx[:] = scipy.fft.irfft2(np.einsum("nfij,fcij->ncij", zs, ws), size)[
        :, :, : dx.shape[2], : dx.shape[3]
    ]


def padded_more(dz, w, dx):
    by_fft(dz, w, dx, size=(2 * dx.shape[2], dx.shape[3] + 3))


def conjugated(dz, w, dx):
    by_fft(dz, w, dx, spectrum=np.conj)


def even_sizes_only(dz, w, dx):
    size = dx.shape[2:]
    zs, ws = scipy.fft.rfft2(dz, size), scipy.fft.rfft2(w, size)
    result = scipy.fft.irfft2(np.einsum("nfij,fcij->ncij", zs, ws))  # of 2 (columns − 1)
    dx[:] = 0
    dx[:, :, :, : result.shape[3]] = result


def others_matrices(x, w, last=1):
    m1 = (x[0] - x[2]) * w[0]
    m2 = (x[1] + x[2]) * (0.5 * w[0] + 0.5 * w[1] + 0.5 * w[2])
    m3 = (x[1] - x[2]) * (0.5 * w[0] - 0.5 * w[1] + 0.5 * w[2])
    m4 = (x[3] - x[1]) * w[2]
    return m1 + m2 - m3, m2 + m3 + last * m4


def six_products(x, w):
    return [x[i] * w[0] + x[i + 1] * w[1] + x[i + 2] * w[2] for i in (0, 1)]


def sign_of_the_last(x, w):
    return others_matrices(x, w, last=-1)


RIGHT = [
    (inflation, lambda H, W, K: (H - K + 1) * (W - K + 1) * K**2 / H / W),
    (products_saved, lambda m, r: (m * r / (m + r - 1)) ** 2),
    (
        tile_products,
        lambda C, F, m, r: (
            (m + r - 1) * (2 * C * (m + r - 1) ** 2 + C * F * (m + r - 1) + F * m * (2 * m + r - 1))
        ),
    ),
    (weights_by_im2col, weights),
    (input_by_fft, padded_more),
    (four_products, others_matrices),
]
WRONG = [
    (inflation, lambda H, W, K: K * K, "too large"),
    (inflation, lambda H, W, K: (H - K) * (W - K) * K * K / (H * W), "too small"),
    (inflation, 18.4, "expected a function"),
    (products_saved, lambda m, r: m * r / (m + r - 1), "too"),
    (products_saved, lambda m, r: (m * r) ** 2 / (m - r + 1) ** 2 if m - r + 1 else 0, "too"),
    (tile_products, lambda C, F, m, r: C * F * (m + r - 1) ** 2, "too small"),
    (
        tile_products,
        lambda C, F, m, r: (
            C * F * (2 * (m + r - 1) ** 3 + (m + r - 1) ** 2 + m * (m + r - 1) * (2 * m + r - 1))
        ),
        "too large",
    ),
    (weights_by_im2col, images_not_swapped, "not yet right"),
    (input_by_fft, conjugated, "not yet right"),
    (input_by_fft, even_sizes_only, "not yet right"),
    (four_products, six_products, "6 products"),
    (four_products, sign_of_the_last, "expected"),
]
