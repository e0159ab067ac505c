"""Answers to the exercises of lesson 60, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_60 import challenge_rows_alone, diagnosis, share_of_peak, unfold


def by_view(x, K):
    seen = np.lib.stride_tricks.sliding_window_view(x, (K, K))
    return seen.transpose(2, 3, 0, 1).reshape(K * K, -1)


def as_rows(x, K):
    return by_view(x, K).T


def taps_swapped(x, K):
    seen = np.lib.stride_tricks.sliding_window_view(x, (K, K))
    return seen.transpose(3, 2, 0, 1).reshape(K * K, -1)


def pixel_by_pixel(x, K):
    P, Q = x.shape[0] - K + 1, x.shape[1] - K + 1
    taps = [(k, l) for k in range(K) for l in range(K)]
    return np.array([[x[p + k, q + l] for p in range(P) for q in range(Q)] for k, l in taps])


def in_place(x, K):
    columns = by_view(x, K)
    x *= 0
    return columns


def by_shifts(x, w):
    """Rows of taps one after the other, from a view of the image: nothing is copied at all."""
    F, K, _ = w.shape
    seen = np.lib.stride_tricks.sliding_window_view(x, K, axis=1)
    P = len(x) - K + 1
    return sum(np.stack([seen[k : k + P] @ w[f, k] for f in range(F)]) for k in range(K))


def whole_matrix(x, w):
    F, K, _ = w.shape
    return (w.reshape(F, -1) @ by_view(x, K)).reshape(F, len(x) - K + 1, -1)


def not_shifted(x, w):
    K, P = w.shape[1], len(x) - w.shape[1] + 1
    U = np.lib.stride_tricks.sliding_window_view(x, K, axis=1)[:P]
    return np.einsum("pql,fkl->fpq", U, w)


FIRST = "host not waited for", "call price", "unfolding left out", "compiling timed"
SPOTS = [*FIRST, "sound", "call price"]
RIGHT = [
    (share_of_peak, lambda windows, bandwidth, flops: min(windows * bandwidth / 2, flops) / flops),
    (unfold, by_view),
    (diagnosis, SPOTS),
    (challenge_rows_alone, by_shifts),
]
WRONG = [
    (share_of_peak, lambda windows, bandwidth, flops: windows * bandwidth / (2 * flops), "share"),
    (share_of_peak, lambda windows, bandwidth, flops: min(1, bandwidth / (2 * flops)), "share"),
    (share_of_peak, lambda windows, bandwidth, flops: min(1, windows * bandwidth / flops), "share"),
    (unfold, as_rows, "expected shape"),
    (unfold, taps_swapped, "the numbers are not"),
    (unfold, pixel_by_pixel, "by slices"),
    (unfold, in_place, "the image is changed"),
    (diagnosis, ["sound", *SPOTS[1:]], "1 is not sound"),
    (diagnosis, [SPOTS[0], "sound", *SPOTS[2:]], "2 is not sound"),
    (diagnosis, [*SPOTS[:2], "call price", *SPOTS[3:]], "3 is not call price"),
    (diagnosis, [*SPOTS[:4], "call price", SPOTS[5]], "5 is not call price"),
    (challenge_rows_alone, whole_matrix, "numbers a window in memory"),
    (challenge_rows_alone, not_shifted, "the numbers are not"),
    (challenge_rows_alone, lambda x, w: whole_matrix(x, w).reshape(len(w), -1), "expected shape"),
]
