"""Rank programs with a fault each; with `right`, the nearest programs without.

The line that is to blame is marked. All are for two ranks or more, with MPI's interface alone.
"""

import numpy as np

# --- arguments that no call may have, or that do not fit those of other ranks ---------------------


def into_what_is_read_only(comm, right=False):
    fixed = np.broadcast_to(np.zeros(4), 4)
    if comm.rank == 0:
        comm.Recv(np.zeros(4) if right else fixed, 1)  # here
    elif comm.rank == 1:
        comm.Send(np.frombuffer(bytes(32)) if right else np.ones(4), 0)


def list_as_an_array(comm, right=False):
    if comm.rank == 0 and right:
        comm.send([1.0, 2.0], dest=1)
    elif comm.rank == 0:
        comm.Send([1.0, 2.0], 1)  # here
    elif comm.rank == 1:
        return comm.recv(source=0) if right else comm.Recv(np.empty(2), 0)
    return None


def counted_from_one(comm, right=False):
    a = np.full(2, comm.rank)
    comm.Bcast(a, root=comm.size - right)  # here
    return a.tolist()


def longer_than_its_place(comm, right=False):
    a = np.arange(4.0)
    if comm.rank == 0:
        comm.Send(a[:3] if right else a, 1)
    elif comm.rank == 1:
        comm.Recv(a if right else a[:3], 0)  # here
    return a.tolist()


def another_dtype(comm, right=False):
    a = np.zeros(4, np.float32) if right else np.empty(2)
    if comm.rank == 0:
        comm.Send(np.ones(4, np.float32), 1)
    elif comm.rank == 1:
        comm.Recv(a, 0)  # here
    return a.tolist()


def object_as_an_array(comm, right=False):
    if comm.rank == 0 and right:
        return comm.recv(source=1)
    if comm.rank == 0:
        comm.Recv(np.empty(2), 1)  # here
    return comm.send([1, 2], dest=0) if comm.rank == 1 else None


def each_its_own_root(comm, right=False):
    a = np.full(2, comm.rank)
    for turn in range(comm.size if right else 1):
        comm.Bcast(a, root=turn if right else comm.rank)  # here
    return a.tolist()


def shares_of_other_lengths(comm, right=False):
    n = comm.allreduce(10 + comm.rank) if right else 10 + comm.rank
    a = np.ones(n)
    comm.Allreduce(a.copy(), a)  # here
    return a.tolist()


# --- calls that the other side does not make, and requests that are not waited for once -----------


def in_another_order(comm, right=False):
    a = np.ones(2)
    if comm.rank == 0 or right:
        comm.Bcast(a)
        comm.Barrier()
    else:
        comm.Barrier()  # here
        comm.Bcast(a)


def ends_early(comm, right=False):
    if comm.rank == 1 and not right:
        return
    comm.Barrier()  # here


def message_to_a_barrier(comm, right=False):
    if comm.rank == 0:
        comm.Send(np.ones(2), 1)
    elif comm.rank == 1 and right:
        comm.Recv(np.ones(2), 0)
    if comm.rank or right:
        comm.Barrier()  # here


def root_alone(comm, right=False):
    a = np.full(2, comm.rank)
    if comm.rank == 0 or right:
        comm.Bcast(a)  # here
    return a.tolist()


def one_message_too_many(comm, right=False):
    a = np.ones(2)
    if comm.rank == 0:
        for _ in range(2):
            comm.Recv(a, 1)
    elif comm.rank == 1:
        comm.Send(a, 0)
        comm.Send(a, 0)
        if not right:
            comm.Send(a, 0, 3)  # here


def send_not_waited_for(comm, right=False):
    a = np.ones(2)
    if comm.rank == 0:
        request = comm.Isend(a, 1)  # here
        if right:
            request.Wait()
    elif comm.rank == 1:
        comm.Recv(a, 0)


def only_the_last_one(comm, right=False):
    a = np.ones((3, 2))
    if comm.rank == 0:
        for row in a:
            comm.Send(row, 1)
    elif comm.rank == 1:
        requests = [comm.Irecv(row, 0) for row in a]  # here
        for request in requests if right else requests[-1:]:
            request.Wait()


def started_and_left(comm, right=False):
    a = np.ones(2)
    if comm.rank == 0:
        request = comm.Send_init(a, 1)
        request.Start()  # here
        if right:
            request.Wait()
    elif comm.rank == 1:
        comm.Recv(a, 0)


# --- buffers that are touched while a message uses them, messages that must be buffered -----------


def changed_before_it_is_sent(comm, right=False):
    a = np.ones(4)
    if comm.rank == 0:
        request = comm.Isend(a, 1)  # here
        if right:
            request.Wait()
        a[:] = 2
        if not right:
            request.Wait()
    elif comm.rank == 1:
        comm.Recv(a, 0)
    return a.tolist()


def written_before_it_is_received(comm, right=False):
    a = np.zeros(4)
    if comm.rank == 0:
        comm.Send(np.ones(4), 1)
    elif comm.rank == 1:
        request = comm.Irecv(a, 0)  # here
        if right:
            request.Wait()
        a[0] = 7
        if not right:
            request.Wait()
    return a.tolist()


def cleared_before_it_arrives(comm, right=False):
    a = np.ones(4)
    if comm.rank == 0:
        if right:
            a[:] = 0
        request = comm.Irecv(a, 1)  # here
        if not right:
            a[:] = 0
        request.Wait()
    elif comm.rank == 1:
        comm.Send(a, 0)
    return a.tolist()


def read_before_it_is_received(comm, right=False):
    a = np.zeros(4)
    if comm.rank == 1:
        comm.Send(np.ones(4), 0)
    if comm.rank:
        return None
    request = comm.Irecv(a, 1)  # here
    if right:
        request.Wait()
    total = a.sum()
    if not right:
        request.Wait()
    return float(total)


def summed_before_it_is_there(comm, right=False):
    total = np.zeros(4)
    request = comm.Iallreduce(np.ones(4), total)  # here
    if right:
        request.Wait()
    first = total[0]
    if not right:
        request.Wait()
    return float(first)


def from_and_to_one_array(comm, right=False):
    a, b, peer = np.full(4, comm.rank), np.zeros(4, int), comm.rank ^ 1
    if peer < comm.size:
        comm.Sendrecv(a, peer, 0, b if right else a, peer, 0)  # here
    return b.tolist()


def answered_before_it_is_received(comm, right=False):
    a = np.zeros(4)
    if comm.rank == 0:
        request = comm.Irecv(a, 1)
        if right:
            request.Wait()
        comm.Send(a, 1)  # here
        if not right:
            request.Wait()
    elif comm.rank == 1:
        comm.Send(np.ones(4), 0)
        comm.Recv(a, 0)
    return a.tolist()


def two_messages_in_one_place(comm, right=False):
    a = np.zeros((2, 4))
    if comm.rank == 0:
        requests = [comm.Irecv(a[tag if right else 0], 1, tag) for tag in range(2)]  # here
        for request in requests:
            request.Wait()
    elif comm.rank == 1:
        for tag in range(2):
            comm.Send(a[tag], 0, tag)


def both_speak_first(comm, right=False):
    a, b, peer = np.ones(4), np.zeros(4), comm.rank ^ 1
    if peer < comm.size and right and comm.rank > peer:
        comm.Recv(b, peer)
        comm.Send(a, peer)
    elif peer < comm.size:
        comm.Send(a, peer)  # here
        comm.Recv(b, peer)


def letter_to_myself(comm, right=False):
    if not right:
        comm.send("word", dest=comm.rank)  # here
        return comm.recv(source=comm.rank)
    request = comm.isend("word", dest=comm.rank)
    word = comm.recv(source=comm.rank)
    request.wait()
    return word


def tags_crossed(comm, right=False):
    a = np.ones(4)
    if comm.rank == 0:
        comm.Send(a, 1, 1)  # here
        comm.Send(a, 1, 2)
    elif comm.rank == 1:
        for tag in (1, 2) if right else (2, 1):
            comm.Recv(a, 0, tag)


# --- receives from any source, and communicators that are never freed -----------------------------


def in_the_order_of_arrival(comm, right=False):
    if comm.rank == 0:
        known = [{"source": rank} if right else {} for rank in range(1, comm.size)]
        return [comm.recv(**source) for source in known]  # here
    return comm.send(comm.rank, dest=0)


def any_one_and_then_the_first(comm, right=False):
    if comm.rank == 0 and comm.size > 2:
        if right:
            comm.recv(source=2)
        comm.recv()  # here
        if not right:
            comm.recv(source=2)
    elif comm.rank in (1, 2) and comm.size > 2:
        comm.send(comm.rank, dest=0)


def also_by_a_detour(comm, right=False):
    last = comm.size - 1
    if comm.rank == 0 and last > 1:
        comm.send("straight", dest=1)
        comm.send(comm.recv(source=last), dest=last)
    elif comm.rank == 1 and last > 1:
        known = [{"source": 0}, {"source": last}] if right else [{}, {}]
        return [comm.recv(**source) for source in known]  # here
    elif comm.rank == last and last > 1:
        comm.send("by a detour", dest=0)
        comm.send(comm.recv(source=0), dest=1)
    return None


def first_come_is_sent_to_all(comm, right=False):
    a = np.zeros((comm.size - 1, 1), int)
    if comm.rank:
        comm.Send(np.full(1, comm.rank), 0)
        return comm.recv(source=0) if right else comm.recv(source=0) and None
    for request in [comm.Irecv(row) for row in a]:  # here
        request.Wait()
    for rank in range(1, comm.size):
        comm.send(rank if right else int(a[0, 0]), dest=rank)
    return None


def half_kept(comm, right=False):
    half = comm.Split(comm.rank % 2, comm.rank)  # here
    total = half.allreduce(comm.rank)
    if right:
        half.Free()
    return total


def last_half_freed(comm, right=False):
    for i in range(2):
        half = comm.Split((comm.rank >> i) % 2, comm.rank)  # here
        half.Barrier()
        if right or i:
            half.Free()


def freed_by_the_others(comm, right=False):
    row = comm.Split(0, comm.rank)  # here
    if comm.rank or right:
        row.Free()


# Of each class: the rank that is to blame, a program, and what is said where no other test asks.
PLANTED = {
    "invalid parameter": [
        (0, into_what_is_read_only),
        (0, list_as_an_array),
        (0, counted_from_one),
    ],
    "parameter matching": [
        (1, longer_than_its_place, "expected at most 24 bytes from rank 0, got 32: .*truncated"),
        (1, another_dtype, "receive: expected float64, got float32 from rank 0, sent at planted"),
        (0, object_as_an_array, "receive: expected float64, got an object from rank 1, sent at"),
        (1, each_its_own_root, "got Bcast of 2 int64 with root 1 on rank 1"),
        (1, shares_of_other_lengths),
    ],
    "call matching": [
        (1, in_another_order, "Bcast of 2 float64 with root 0 as on rank 0, got Barrier on rank 1"),
        (0, ends_early),
        (1, message_to_a_barrier),
        (0, root_alone),
        (1, one_message_too_many),
    ],
    "request lifecycle": [(0, send_not_waited_for), (1, only_the_last_one), (0, started_and_left)],
    "local concurrency": [
        (0, changed_before_it_is_sent),
        (1, written_before_it_is_received),
        (0, cleared_before_it_arrives),
        (0, read_before_it_is_received),
        (0, summed_before_it_is_there),
        (0, from_and_to_one_array),
        (0, answered_before_it_is_received),
        (0, two_messages_in_one_place),
    ],
    "buffering hazard": [
        (0, both_speak_first),
        (0, letter_to_myself),
        (0, tags_crossed),
    ],
    "message race": [
        (0, in_the_order_of_arrival),
        (0, any_one_and_then_the_first),
        (1, also_by_a_detour),
        (0, first_come_is_sent_to_all),
    ],
    "resource leak": [(0, half_kept), (0, last_half_freed), (0, freed_by_the_others)],
}
