"""Answers to the exercises of lesson 20, right and wrong."""

import math

from cnnlab.lessons.lesson_20 import half_way, reduce, rounds
from tests.check import shared_ranks


def along_a_tree(comm, array):
    import numpy as np

    other, distance = np.empty_like(array), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.Send(array, comm.rank - distance)
            return
        if comm.rank + distance < comm.size:
            comm.Recv(other, comm.rank + distance)
            array += other
        distance *= 2


def only_for_powers_of_two(comm, array):
    import numpy as np

    other, distance = np.empty_like(array), comm.size // 2
    while distance:
        if distance <= comm.rank < 2 * distance:
            comm.Send(array, comm.rank - distance)
            return
        if comm.rank < distance:
            comm.Recv(other, comm.rank + distance)
            array += other
        distance //= 2


def only_for_equal_values(comm, array):
    array *= comm.size


def nobody_sends(comm, array):
    import numpy as np

    if comm.rank == 0 and comm.size > 1:
        comm.Recv(np.empty_like(array), 1)


def by_the_library(comm, array):
    comm.Allreduce(array.copy(), array)


RIGHT = [
    (reduce, along_a_tree),
    (rounds, lambda n_ranks: math.ceil(math.log2(n_ranks))),
    (half_way, lambda latency, bandwidth: latency * bandwidth),
]
WRONG = [
    (reduce, only_for_powers_of_two, "on 3 ranks"),
    (reduce, only_for_equal_values, "on 2 ranks"),
    (reduce, nobody_sends, "deadlock"),
    (reduce, by_the_library, "comm.Allreduce: expected messages between two ranks"),
    (rounds, lambda n_ranks: n_ranks * 10, "too large"),
    (rounds, lambda n_ranks: n_ranks.bit_length(), "too large"),
    (half_way, lambda latency, bandwidth: latency * bandwidth / 4, "too small"),
]
shared_ranks.as_in_a_notebook(RIGHT + WRONG)
