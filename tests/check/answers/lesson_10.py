"""Answers to the exercises of lesson 10, right and wrong."""

import numba
import numpy as np

from cnnlab.kernels import loops
from cnnlab.lessons.lesson_10 import bound, dense, limit


@numba.njit(parallel=True)
def race(x, w, b, z):
    """Parallel over the terms of the sum: all threads add to the same output."""
    N, O = z.shape
    for n in range(N):
        for o in range(O):
            z[n, o] = b[o]
        for d in numba.prange(x.shape[1]):
            for o in range(O):
                z[n, o] += w[o, d] * x[n, d]


@numba.njit(parallel=True)
def race_for_a_scratch_array(x, w, b, z):
    """Each output is written once, but the products are kept where all threads keep theirs."""
    N, O = z.shape
    products = np.zeros(x.shape[1], np.float32)
    for i in numba.prange(N * O):
        n, o = i // O, i % O
        for d in range(x.shape[1]):
            products[d] = w[o, d] * x[n, d]
        z[n, o] = b[o] + products.sum()


@numba.njit(parallel=True)
def only_for_one_thread(x, w, b, z):
    """Splits the work by hand, and forgets the part that does not divide."""
    N, O = z.shape
    T = numba.get_num_threads()
    share = N * O // T
    for t in numba.prange(T):
        for i in range(t * share, (t + 1) * share):
            n, o = i // O, i % O
            total = b[o]
            for d in range(x.shape[1]):
                total += w[o, d] * x[n, d]
            z[n, o] = total


@numba.njit
def not_parallel(x, w, b, z):
    for n in numba.prange(len(x)):
        for o in range(len(b)):
            total = b[o]
            for d in range(x.shape[1]):
                total += w[o, d] * x[n, d]
            z[n, o] = total


@numba.njit(parallel=True)
def scratch_of_two_threads(x, w, b, z):
    """Right on two threads; on three, two of them keep their products in the same place."""
    N, O = z.shape
    products = np.zeros((2, x.shape[1]), np.float32)
    for i in numba.prange(N * O):
        n, o, mine = i // O, i % O, products[numba.get_thread_id() % 2]
        for d in range(x.shape[1]):
            mine[d] = w[o, d] * x[n, d]
        z[n, o] = b[o] + mine.sum()


@numba.njit(parallel=True)
def calls_the_loops(x, w, b, z):
    for n in numba.prange(len(x)):
        loops.dense_forward(x[n : n + 1], w, b, z[n : n + 1])


RIGHT = [
    (bound, lambda tasks, threads: tasks / np.ceil(tasks / threads)),
    (limit, lambda efficiency: efficiency / (1 - efficiency)),
]
WRONG = [
    (dense, race, "right on fewer"),
    (dense, race_for_a_scratch_array, "both write element 0 of an array that the kernel made"),
    (dense, only_for_one_thread, "right on fewer"),
    (dense, not_parallel, "not parallel: decorate it with @numba.njit(parallel=True)"),
    (dense, scratch_of_two_threads, "threads 0 and 2 of the prange both write element 0"),
    (dense, calls_the_loops, "expected a kernel of your own"),
    (bound, 8, "expected a function of tasks, threads"),
    (bound, lambda tasks, threads: min(tasks, threads) + 1, "too large"),
    (limit, lambda efficiency: 2 * efficiency * 0.5, "too small"),
    (limit, lambda efficiency: 1e6, "too large"),
]
