"""Arguments that no call may have, or that do not fit those of other ranks."""

import numpy as np


def beyond_the_last_rank(comm):
    a = np.ones(3)
    if comm.rank == 1:
        comm.Send(a, comm.rank + 1 if comm.size == 2 else comm.size)  # here
    else:
        comm.Recv(a, 1)


def around_the_ring(comm):
    a, b = np.ones(3), np.zeros(3)
    comm.Sendrecv(a, (comm.rank + 1) % comm.size, 0, b, (comm.rank - 1) % comm.size, 0)
    return b.tolist()


def negative_tag(comm):
    if comm.rank == 0:
        comm.Send(np.ones(1), 1, -5)  # here
    elif comm.rank == 1:
        comm.Recv(np.empty(1), 0, -5)


def positive_tag(comm):
    if comm.rank == 0:
        comm.Send(np.ones(1), 1, 5)
    elif comm.rank == 1:
        comm.Recv(np.empty(1), 0, 5)


def into_a_column(comm):
    a = np.zeros((4, 4))
    if comm.rank == 0:
        comm.Send(np.ones(4), 1)
    elif comm.rank == 1:
        comm.Recv(a[:, 0], 0)  # here


def into_a_row(comm):
    a = np.zeros((4, 4))
    if comm.rank == 0:
        comm.Send(np.ones(4), 1)
    elif comm.rank == 1:
        comm.Recv(a[0], 0)
    return a.tolist()


def into_what_is_read_only(comm):
    a = np.broadcast_to(np.zeros(4), 4)
    if comm.rank == 0:
        comm.Recv(a, 1)  # here
    elif comm.rank == 1:
        comm.Send(np.ones(4), 0)


def from_what_is_read_only(comm):
    a = np.zeros(4)
    if comm.rank == 0:
        comm.Recv(a, 1)
    elif comm.rank == 1:
        comm.Send(np.frombuffer(bytes(32)), 0)


def list_as_an_array(comm):
    if comm.rank == 0:
        comm.Send([1.0, 2.0], 1)  # here
    elif comm.rank == 1:
        comm.Recv(np.empty(2), 0)


def list_as_an_object(comm):
    if comm.rank == 0:
        comm.send([1.0, 2.0], dest=1)
    elif comm.rank == 1:
        return comm.recv(source=0)
    return None


def counted_from_one(comm):
    comm.Bcast(np.ones(2), root=comm.size)  # here


def last_rank_is_root(comm):
    a = np.full(2, comm.rank)
    comm.Bcast(a, root=comm.size - 1)
    return a.tolist()


def longer_than_its_place(comm):
    a = np.arange(4.0)
    if comm.rank == 0:
        comm.Send(a, 1)
    elif comm.rank == 1:
        comm.Recv(a[:3], 0)  # here


def shorter_than_its_place(comm):
    a = np.arange(4.0)
    if comm.rank == 0:
        comm.Send(a[:3], 1)
    elif comm.rank == 1:
        comm.Irecv(a, 0).Wait()
    return a.tolist()


def of_another_dtype(comm):
    if comm.rank == 0:
        comm.Send(np.ones(4, np.float32), 1)
    elif comm.rank == 1:
        comm.Recv(np.empty(2), 0)  # here


def of_the_same_dtype(comm):
    a = np.zeros(4, np.float32)
    if comm.rank == 0:
        comm.Send(np.ones(4, np.float32), 1)
    elif comm.rank == 1:
        comm.Recv(a, 0)
    return a.tolist()


def object_as_an_array(comm):
    if comm.rank == 0:
        comm.Recv(np.empty(2), 1)  # here
    elif comm.rank == 1:
        comm.send([1, 2], dest=0)


def object_as_an_object(comm):
    if comm.rank == 0:
        return comm.recv(source=1)
    return comm.send([1, 2], dest=0) if comm.rank == 1 else None


def each_its_own_root(comm):
    comm.Bcast(np.ones(2), root=comm.rank)  # here


def each_root_in_turn(comm):
    a = np.full(2, comm.rank)
    for root in range(comm.size):
        comm.Bcast(a, root=root)
    return a.tolist()


def shares_of_other_lengths(comm):
    a = np.ones(10 + comm.rank)
    comm.Allreduce(a.copy(), a)  # here


def lengths_first(comm):
    n = comm.allreduce(10 + comm.rank)
    a = np.ones(n)
    comm.Allreduce(a.copy(), a)
    return a.tolist()


def sums_of_other_dtypes(comm):
    a = np.ones(4, np.float64 if comm.rank else np.float32)
    comm.Reduce(a, np.zeros_like(a), root=0)  # here


def sums_of_one_dtype(comm):
    a, b = np.ones(4, np.float32), np.zeros(4, np.float32)
    comm.Reduce(a, b, root=0)
    return b.tolist()


PLANTED = {
    "invalid parameter": [
        (1, beyond_the_last_rank, around_the_ring),
        (0, negative_tag, positive_tag),
        (1, into_a_column, into_a_row),
        (0, into_what_is_read_only, from_what_is_read_only),
        (0, list_as_an_array, list_as_an_object),
        (0, counted_from_one, last_rank_is_root),
    ],
    "parameter matching": [
        (1, longer_than_its_place, shorter_than_its_place),
        (1, of_another_dtype, of_the_same_dtype),
        (0, object_as_an_array, object_as_an_object),
        (1, each_its_own_root, each_root_in_turn),
        (1, shares_of_other_lengths, lengths_first),
        (1, sums_of_other_dtypes, sums_of_one_dtype),
    ],
}
