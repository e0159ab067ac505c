"""The exercises of lesson 01."""

import numpy as np

from cnnlab.check.exercises import kinds


@kinds.number(
    "Each of 6 × 24 × 24 results takes 25 multiply-adds forward. And backward?",
    "The gradient of the weights takes as many as forward: every product there meets a dz. "
    "Twice 86,400 for an image, then.",
)
def multiply_adds():
    """At two operations each, and a peak in GFLOP/s, that bounds the time of an epoch."""
    return 60_000 * 2 * (6 * 24 * 24) * 25


@kinds.kernel(
    "conv_backward_bias",
    "One element of db for each filter f: over which of the indices n, f, p, q does it sum?",
    "For each f, add up dz[n, f, p, q] over all n, p and q; then store, rather than add to, db[f].",
)
def bias_gradient(dz, db):
    """Each pass of the loop writes one element, which no other pass touches."""
    for f in range(db.size):
        db[f] = dz[:, f].sum()


@kinds.kernel(
    "conv_backward_input",
    "Tap (k, l) lies on pixel (i, j) if p · stride + k = i and q · stride + l = j: find p and q.",
    "divmod(i - k, stride) gives p and a rest. The output exists if the rest is 0 and 0 <= p < P; "
    "the same holds for q.",
)
def input_gradient(dz, w, dx, stride=1):
    """Each pixel is written once; the price is a test at every tap."""
    K, (P, Q) = w.shape[2], dz.shape[2:]
    for n, c, i, j in np.ndindex(dx.shape):
        total = 0.0
        for k, l in np.ndindex(K, K):
            p, rest_p = divmod(i - k, stride)
            q, rest_q = divmod(j - l, stride)
            if rest_p == rest_q == 0 and 0 <= p < P and 0 <= q < Q:
                total += dz[n, :, p, q] @ w[:, c, k, l]
        dx[n, c, i, j] = total
