"""Receives from any source, and communicators that are never freed."""

import numpy as np


def in_the_order_of_arrival(comm):
    if comm.rank == 0:
        return [comm.recv() for _ in range(1, comm.size)]  # here
    return comm.send(comm.rank, dest=0)


def in_the_order_of_ranks(comm):
    if comm.rank == 0:
        return [comm.recv(source=rank) for rank in range(1, comm.size)]
    return comm.send(comm.rank, dest=0)


def differences_as_they_come(comm):
    if comm.rank == 0:
        total, a = 0, np.zeros(1, int)
        for _ in range(1, comm.size):
            comm.Recv(a)  # here
            total = 2 * total + int(a[0])
        return total
    return comm.Send(np.full(1, comm.rank), 0)


def sum_as_it_comes(comm):
    if comm.rank == 0:
        total, a = 0, np.zeros(1, int)
        for _ in range(1, comm.size):
            comm.Recv(a)
            total += int(a[0])
        return total
    return comm.Send(np.full(1, comm.rank), 0)


def any_one_and_then_the_first(comm):
    if comm.rank == 0 and comm.size > 2:
        comm.recv()  # here
        comm.recv(source=2)
    elif comm.rank in (1, 2):
        comm.send(comm.rank, dest=0)


def the_first_and_then_any_one(comm):
    if comm.rank == 0 and comm.size > 2:
        comm.recv(source=2)
        comm.recv()
    elif comm.rank in (1, 2) and comm.size > 2:
        comm.send(comm.rank, dest=0)


def first_come_is_first_told(comm):
    a = np.zeros((comm.size - 1, 1), int)
    if comm.rank == 0:
        for request in [comm.Irecv(row) for row in a]:  # here
            request.Wait()
        for rank in range(1, comm.size):
            comm.send(int(a[0, 0]), dest=rank)
        return None
    comm.Send(np.full(1, comm.rank), 0)
    comm.recv(source=0)
    return None


def each_is_told_its_own(comm):
    if comm.rank == 0:
        for _ in range(1, comm.size):
            rank = comm.recv()
            comm.send(rank, dest=rank)
        return None
    comm.send(comm.rank, dest=0)
    return comm.recv(source=0)


def also_by_a_detour(comm):
    last = comm.size - 1
    if comm.rank == 0 and last > 1:
        comm.send("straight", dest=1)
        comm.send(comm.recv(source=last), dest=last)
    elif comm.rank == 1 and last > 1:
        return [comm.recv(), comm.recv()]  # here
    elif comm.rank == last and last > 1:
        comm.send("by a detour", dest=0)
        comm.send(comm.recv(source=0), dest=1)
    return None


def each_by_its_way(comm):
    last = comm.size - 1
    if comm.rank == 0 and last > 1:
        comm.send("straight", dest=1)
        comm.send(comm.recv(source=last), dest=last)
    elif comm.rank == 1 and last > 1:
        return [comm.recv(source=0), comm.recv(source=last)]
    elif comm.rank == last and last > 1:
        comm.send("by a detour", dest=0)
        comm.send(comm.recv(source=0), dest=1)
    return None


def half_kept(comm):
    half = comm.Split(comm.rank % 2, comm.rank)  # here
    return half.allreduce(comm.rank)


def half_freed(comm):
    half = comm.Split(comm.rank % 2, comm.rank)
    total = half.allreduce(comm.rank)
    half.Free()
    return total


def last_half_freed(comm):
    for i in range(2):
        half = comm.Split((comm.rank >> i) % 2, comm.rank)  # here
        half.Barrier()
    half.Free()


def each_half_freed(comm):
    for i in range(2):
        half = comm.Split((comm.rank >> i) % 2, comm.rank)
        half.Barrier()
        half.Free()


def freed_by_the_others(comm):
    row = comm.Split(0, comm.rank)  # here
    if comm.rank:
        row.Free()


def freed_by_all(comm):
    row = comm.Split(0, comm.rank)
    if comm.rank:
        row.Barrier()
    else:
        row.Barrier()
    row.Free()


PLANTED = {
    "message race": [
        (0, in_the_order_of_arrival, in_the_order_of_ranks),
        (0, differences_as_they_come, sum_as_it_comes),
        (0, any_one_and_then_the_first, the_first_and_then_any_one),
        (1, also_by_a_detour, each_by_its_way),
        (0, first_come_is_first_told, each_is_told_its_own),
    ],
    "resource leak": [
        (0, half_kept, half_freed),
        (0, last_half_freed, each_half_freed),
        (0, freed_by_the_others, freed_by_all),
    ],
}
