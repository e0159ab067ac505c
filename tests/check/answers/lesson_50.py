"""Answers to the exercises of lesson 50: right ones, and wrong ones with a word of the verdict."""

import numpy as np
import scipy.fft

from cnnlab.lessons.lesson_50 import (  # isort: skip
    better_points, four_products, implicit_gemm, input_by_fft, weights_by_im2col, what_is_missing,
)  # fmt: skip


def unfolded(x, K):
    windows = np.lib.stride_tricks.sliding_window_view(x, (K, K), axis=(2, 3))
    return windows.transpose(1, 4, 5, 0, 2, 3).reshape(x.shape[1] * K * K, -1)


def weights(x, dz, dw, rows=lambda dz: dz.swapaxes(0, 1)):
    dw[:] = (rows(dz).reshape(len(dw), -1) @ unfolded(x, dw.shape[2]).T).reshape(dw.shape)


def whole_matrix(x, w, b, z):
    N, F, P, Q = z.shape
    product = w.reshape(F, -1) @ unfolded(x, w.shape[2])
    z[:] = product.reshape(F, N, P, Q).swapaxes(0, 1) + b[:, None, None]


def in_rows(x, w, b, z, bias=1):
    K = w.shape[2]
    for n in range(len(z)):
        for p in range(z.shape[2]):
            z[n, :, p] = w.reshape(len(b), -1) @ unfolded(x[n : n + 1, :, p : p + K], K)
            z[n, :, p] += bias * b[:, None]


def without_bias(x, w, b, z):
    in_rows(x, w, b, z, bias=0)


def points(*pairs):
    return lambda: [0, *pairs, *(-p for p in pairs)]


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
    m2 = (x[1] + x[2]) * (0.5 * w[0] + 0.5 * w[1])
    m3 = (x[1] - x[2]) * (0.5 * w[0] - 0.5 * w[1])
    m4 = (x[1] - x[3]) * w[1]
    return m1 + m2 - m3, m2 + m3, m2 - m3 - last * m4


def six_products(x, w):
    return [x[i] * w[0] + x[i + 1] * w[1] for i in (0, 1, 2)]


def sign_of_the_last(x, w):
    return others_matrices(x, w, last=-1)


def two_results(x, w):
    return others_matrices(x, w)[:2]


RIGHT = [
    (implicit_gemm, in_rows),
    (better_points, points(1, 2, 0.5, 0.75, 1.5)),
    (what_is_missing, "the size, given to irfft2"),
    (weights_by_im2col, weights),
    (input_by_fft, padded_more),
    (four_products, others_matrices),
]
WRONG = [
    (implicit_gemm, whole_matrix, "of workspace; at most 64"),
    (implicit_gemm, without_bias, "not yet right"),
    (better_points, points(1, 2, 0.5, 4, 0.25), "times as much"),
    (better_points, points(1, 2, 0.5, 4, 3), "times as much"),
    (better_points, points(1, 2, 0.5, 0.75), "expected eleven"),
    (better_points, points(1, 2, 0.5, 0.75, 0.75), "expected eleven"),
    (what_is_missing, "the conjugate", "real numbers"),
    (weights_by_im2col, images_not_swapped, "not yet right"),
    (input_by_fft, conjugated, "not yet right"),
    (input_by_fft, even_sizes_only, "not yet right"),
    (four_products, six_products, "6 products"),
    (four_products, sign_of_the_last, "expected"),
    (four_products, two_results, "expected"),
]
