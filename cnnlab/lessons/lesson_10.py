"""The exercises of lesson 10."""

import numba

from cnnlab.check import threads
from cnnlab.check.exercises import kinds


@kinds.kernel(
    "dense_forward",
    "How do you make two indices, n and o, from one that counts to N · O?",
    "n = i // O and o = i % O. The sum stays in a variable of the iteration; z[n, o] is written "
    "once, by this iteration and no other.",
    by=threads.kernel,
)
@numba.njit(parallel=True)
def dense(x, w, b, z):
    """Each iteration writes one element of z, and no two the same."""
    N, O = z.shape
    for i in numba.prange(N * O):
        n, o = i // O, i % O
        total = b[o]
        for d in range(x.shape[1]):
            total += w[o, d] * x[n, d]
        z[n, o] = total


@kinds.formula(
    lambda rng: {"tasks": int(rng.integers(1, 200)), "threads": int(rng.integers(1, 65))},
    "How many tasks does the thread have that has the most?",
    "Time counts in rounds: without threads there are as many as tasks; with them, "
    "tasks / threads, rounded up.",
)
def bound(tasks, threads):
    """The last round takes as long as the others, however few tasks it has."""
    return tasks / -(-tasks // threads)


@kinds.formula(
    lambda rng: {"efficiency": float(rng.uniform(0.55, 0.95))},
    "Write Amdahl's law for two cores, and solve it for the serial share s.",
    "2 e = 1 / (s + (1 − s) / 2) gives s = 1 / e − 1; and without end of cores, 1 / s is left.",
)
def limit(efficiency):
    """2 e = 1 / (s + (1 − s) / 2), so s = 1 / e − 1, and no number of cores passes 1 / s."""
    return 1 / (1 / efficiency - 1)
