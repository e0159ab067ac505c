"""Answers to the exercises of lesson 23, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_23 import allreduce, numbers, sent
from tests.check import shared_ranks


def everything_round_the_ring(comm, array):
    import numpy as np

    passing, coming = array.copy(), np.empty_like(array)
    for _ in range(comm.size - 1):
        comm.Sendrecv(
            passing, (comm.rank + 1) % comm.size, 0, coming, (comm.rank - 1) % comm.size, 0
        )
        array += coming
        passing, coming = coming, passing


def through_rank_0(comm, array):
    import numpy as np

    other = np.empty_like(array)
    if comm.rank:
        comm.Send(array, 0)
        comm.Recv(array, 0)
        return
    for rank in range(1, comm.size):
        comm.Recv(other, rank)
        array += other
    for rank in range(1, comm.size):
        comm.Send(array, rank)


def only_for_powers_of_two(comm, array):
    import numpy as np

    other, distance = np.empty_like(array), 1
    while distance < comm.size:
        peer = comm.rank ^ distance
        if peer < comm.size:
            comm.Sendrecv(array, peer, 0, other, peer, 0)
            array += other
        distance *= 2


def only_for_equal_values(comm, array):
    array *= comm.size


def only_rank_0_knows(comm, array):
    import numpy as np

    other = np.empty_like(array)
    if comm.rank:
        comm.Send(array, 0)
        return
    for rank in range(1, comm.size):
        comm.Recv(other, rank)
        array += other


def only_for_few_elements(comm, array):
    """Both send first: the library puts small messages aside, and not the larger ones."""
    import numpy as np

    total, other = array.copy(), np.empty_like(array)
    for shift in range(1, comm.size):
        comm.Ssend(array, (comm.rank + shift) % comm.size)
        comm.Recv(other, (comm.rank - shift) % comm.size)
        total += other
    array[:] = total


RIGHT = [
    (allreduce, everything_round_the_ring),
    (allreduce, through_rank_0),
    (
        numbers,
        lambda n_ranks, latency, per_number: (
            latency / ((1 - 2 * (1 - 1 / n_ranks) / np.log2(n_ranks)) * per_number)
        ),
    ),
    (sent, lambda n_ranks, m: 2 * (m - m / n_ranks)),
]
WRONG = [
    (allreduce, only_for_powers_of_two, "on 3 ranks"),
    (allreduce, only_for_equal_values, "on 2 ranks"),
    (allreduce, only_rank_0_knows, "rank 1"),
    (allreduce, only_for_few_elements, "deadlock"),
    (numbers, lambda n_ranks, latency, per_number: latency / per_number, "too small"),
    (sent, lambda n_ranks, m: 2 * m, "too large"),
    (sent, ..., "not yet answered"),
]
shared_ranks.as_in_a_notebook(RIGHT + WRONG)
