"""Answers to the exercises of lesson 23, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_23 import challenge, numbers, reduce_scatter, same_bits
from cnnlab.ranks.schedules import Step, block, rabenseifner, ring


def from_the_left_first(rank, size, n):
    for k in reversed(range(1, size)):
        to, source = (rank + k) % size, (rank - k) % size
        yield Step(to, *block(to, size, n), source, *block(rank, size, n), add=True)


def half_a_ring(rank, size, n):
    """Block r + 1 ends on rank r."""
    yield from list(ring(rank, size, n))[: size - 1]


def a_ring_with_the_right_block(rank, size, n):
    right, left = (rank + 1) % size, (rank - 1) % size
    for k in range(size - 1):
        sent, came = (rank - k - 1) % size, (rank - k - 2) % size
        yield Step(right, *block(sent, size, n), left, *block(came, size, n), add=True)


def round_the_ring(comm, array):
    passing, coming = array.copy(), np.empty_like(array)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for _ in range(comm.size - 1):
        comm.Sendrecv(passing, right, 0, coming, left, 0)
        array += coming
        passing, coming = coming, passing


def one_too_few(comm, array):
    every = np.zeros((comm.size, array.size), np.float32)
    for rank, row in enumerate(comm.allgather(array)):
        every[rank] = row
    array[:] = every[:-1].sum(axis=0)


RIGHT = [
    (reduce_scatter, from_the_left_first),
    (
        numbers,
        lambda n_ranks, alpha, beta: (
            alpha / ((1 - 2 * (1 - 1 / n_ranks) / np.log2(n_ranks)) * beta)
        ),
    ),
]
WRONG = [
    (reduce_scatter, half_a_ring, "block 0 of rank 0 is not the sum"),
    (reduce_scatter, a_ring_with_the_right_block, "not the"),
    (same_bits, round_the_ring, "has not the bits of rank 0"),
    (same_bits, one_too_few, "has not the sum"),
    (numbers, lambda n_ranks, alpha, beta: alpha / beta, "too small"),
    (challenge, ring, "not faster than the ring"),
    (challenge, rabenseifner, "not faster than the ring"),
    (challenge, lambda rank, size, n: iter(()), "has not the sum"),
]
