"""Answers to the exercises of lesson 20, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_20 import from_ranks, reduce, scatter, shift


def along_a_tree(comm, array):
    other, distance = np.empty_like(array), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.Send(array, comm.rank - distance)
            return
        if comm.rank + distance < comm.size:
            comm.Recv(other, comm.rank + distance)
            array += other
        distance *= 2


def flat(comm, array):
    if comm.rank:
        comm.send(array, 0)
    else:
        array += sum(comm.recv(source=rank) for rank in range(1, comm.size))


def only_for_powers_of_two(comm, array):
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
    if comm.rank == 0 and comm.size > 1:
        comm.Recv(np.empty_like(array), 1)


def halves(general):
    """A scatter by halves; if not general, for powers of two alone."""

    def scattered(comm, whole, part):
        n, rows = comm.size, whole
        span = 1 << ((n - 1).bit_length() if general else n.bit_length() - 1)
        while span > 1:
            span //= 2
            if comm.rank % (2 * span) == 0 and comm.rank + span < n:
                comm.Send(rows[span : 2 * span], comm.rank + span)
                rows = rows[:span]
            elif comm.rank % (2 * span) == span:
                rows = np.empty((min(span, n - comm.rank), part.size))
                comm.Recv(rows, comm.rank - span)
        part[:] = rows[0]

    return scattered


def row_by_row(comm, whole, part):
    if comm.rank == 0:
        for rank in range(1, comm.size):
            comm.Send(whole[rank], rank)
        part[:] = whole[0]
    else:
        comm.Recv(part, 0)


def ring(order, step=1):
    """A shift by so many ranks, in which `order(comm)` says whether a rank sends first."""

    def shifted(comm, array):
        received, first = np.zeros_like(array), order(comm)
        if not first:
            comm.Recv(received, (comm.rank - step) % comm.size)
        comm.Send(array, (comm.rank + step) % comm.size)
        if first:
            comm.Recv(received, (comm.rank - step) % comm.size)
        array[:] = received

    return shifted


def into_what_is_sent(comm, array):
    if comm.rank == 0:
        comm.Send(array, (comm.rank + 1) % comm.size)
        comm.Recv(array, (comm.rank - 1) % comm.size)
    else:
        comm.Recv(array, (comm.rank - 1) % comm.size)
        comm.Send(array, (comm.rank + 1) % comm.size)


def doubled(cost, latency, factor=2):
    size = 4
    while (size - 1) * cost + latency <= np.ceil(np.log2(size)) * (cost + latency):
        size = max(size + 1, int(factor * size))
    return size


RIGHT = [
    (reduce, along_a_tree),
    (scatter, halves(general=True)),
    (from_ranks, doubled),
    (shift, ring(lambda comm: comm.rank == 0)),
    (shift, ring(lambda comm: comm.rank % 2 == 1)),
]
WRONG = [
    (reduce, only_for_powers_of_two, "on 3 ranks"),
    (reduce, only_for_equal_values, "on 2 ranks"),
    (reduce, nobody_sends, "deadlock"),
    (reduce, flat, "on 4 ranks: rank 0 has 3 messages, more than 2"),
    (reduce, lambda comm, array: comm.allreduce(array), "comm.allreduce: expected Send and Recv"),
    (scatter, row_by_row, "on 4 ranks: rank 0 has 3 messages, more than 2"),
    (scatter, lambda comm, whole, part: comm.bcast(whole), "comm.bcast: expected Send and Recv"),
    (scatter, lambda comm, whole, part: part.fill(0), "on 1 ranks: rank 0 has [0. 0. 0.], not"),
    (scatter, halves(general=False), "raised TypeError"),
    (from_ranks, lambda cost, latency: doubled(cost, latency, 1), "too small"),
    (from_ranks, lambda cost, latency: 4, "too small"),
    (shift, ring(lambda comm: True), "deadlock"),
    (shift, ring(lambda comm: False), "deadlock"),
    (shift, into_what_is_sent, "on 2 ranks: rank 0 has 0, not 1"),
    (shift, ring(lambda comm: comm.rank == 0, -1), "on 3 ranks: rank 0 has 1, not 2"),
    (shift, lambda comm, array: comm.Sendrecv(array, 0, 0, array, 0, 0), "comm.Sendrecv: expected"),
]
