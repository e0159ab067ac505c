"""The exercises of lesson 03."""

import numba
import numpy as np

from cnnlab.check.exercises import kinds
from cnnlab.check.verdict import number_verdict


def wrong_loss(answer) -> str:
    """What is wrong with a loss, at fresh small numbers and at large ones; "" if nothing is."""
    small = np.random.default_rng().uniform(-3, 3, 2)
    for z, t in [(small[0], 0), (small[1], 1), (40, 0), (-1000, 1), (1000, 0), (1000, 1)]:
        got, expected = answer(np.float64(z), t), np.logaddexp(0, z) - t * z
        found = number_verdict(f"at z={z:.6g}, t={t}", got, expected, 1e-6)
        if not found:
            return found.text
    return ""


@kinds.number(
    "2 · N · 1024² operations, and 4 · (1024² + 2 · 1024 · N) bytes: divide, and ask for 10.",
    "I = N · 1024 / (2 · 1024 + 4 N). From I ≥ 10 follows N · (1024 − 40) ≥ 20 · 1024. A batch is "
    "a whole number.",
)
def smallest_batch():
    """I = N · 1024 / (2 · 1024 + 4 N) ≥ 10. For 10 outputs, I stays below 5 for any batch."""
    from math import ceil

    return ceil(20 * 1024 / (1024 - 40))


@kinds.tested(
    wrong_loss,
    "For a large positive z, exp(z) overflows, and exp(-z) does not: can you take it out?",
    "log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)).",
    tells=True,
)
def loss_from_z(z, t):
    """The exponential is never of a positive number, so it is at most 1."""
    return max(z, 0) - t * z + np.log1p(np.exp(-abs(z)))


@kinds.kernel(
    "dense_forward",
    "Four totals for images n to n + 3, and one loop over i: load w[o, i] once, use it four times.",
    "range(0, N - 3, 4) takes the images by fours. Those left over, from N - N % 4 on, need plain "
    "loops.",
)
@numba.njit
def four_images(x, w, b, z):
    """Two causes: fewer loads, and four sums that need not wait for each other."""
    N = z.shape[0]
    for n in range(0, N - 3, 4):
        for o in range(z.shape[1]):
            t0 = t1 = t2 = t3 = b[o]
            for i in range(x.shape[1]):
                weight = w[o, i]
                t0 += weight * x[n, i]
                t1 += weight * x[n + 1, i]
                t2 += weight * x[n + 2, i]
                t3 += weight * x[n + 3, i]
            z[n, o], z[n + 1, o], z[n + 2, o], z[n + 3, o] = t0, t1, t2, t3
    for n in range(N - N % 4, N):
        for o in range(z.shape[1]):
            total = b[o]
            for i in range(x.shape[1]):
                total += w[o, i] * x[n, i]
            z[n, o] = total
