"""The exercises of lesson 12."""

import numba
import numpy as np

from cnnlab.check import threads
from cnnlab.check.exercises import kinds


@kinds.kernel(
    "conv_backward_input",
    "Collapse over n and c: what may an iteration write, and what does it only read?",
    "An iteration owns dx[n, c]: set it to zero, then scatter the products of all filters f into "
    "it. No other iteration touches it.",
    by=threads.kernel,
)
@numba.njit(parallel=True)
def backward_input(dz, w, dx):
    """A scatter is safe inside the task that owns all it scatters to."""
    N, F, P, Q = dz.shape
    C, K = dx.shape[1], w.shape[2]
    for i in numba.prange(N * C):
        n, c = i // C, i % C
        out = dx[n, c]
        out[:] = np.float32(0)
        for f in range(F):
            for p in range(P):
                for q in range(Q):
                    for k in range(K):
                        for l in range(K):
                            out[p + k, q + l] += w[f, c, k, l] * dz[n, f, p, q]


@kinds.formula(
    lambda rng: {"filters": int(rng.integers(1, 20)), "kernel": int(rng.integers(1, 9))},
    "How many windows of one map does a pixel in the middle lie in?",
    "In kernel × kernel windows of each map, and there is a map for each filter.",
)
def reads(filters, kernel):
    """It lies in kernel² windows of each map."""
    return filters * kernel * kernel


@kinds.formula(
    lambda rng: {"channels": int(rng.integers(1, 9)), "kernel": int(rng.integers(1, 9))},
    "The bias is stored first. What comes after it?",
    "One store for each weight that takes part: those of all channels.",
)
def stores(channels, kernel):
    """The bias, and then one for every tap of every channel."""
    return 1 + channels * kernel * kernel
