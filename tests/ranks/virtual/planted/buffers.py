"""Buffers that are touched while a message uses them, and messages that must be buffered."""

import numpy as np


def changed_before_it_is_sent(comm):
    a = np.ones(4)
    if comm.rank == 0:
        request = comm.Isend(a, 1)  # here
        a[:] = 2
        request.Wait()
    elif comm.rank == 1:
        comm.Recv(a, 0)
    return a.tolist()


def changed_once_it_is_sent(comm):
    a = np.ones(4)
    if comm.rank == 0:
        request = comm.Isend(a, 1)
        request.Wait()
        a[:] = 2
    elif comm.rank == 1:
        comm.Recv(a, 0)
    return a.tolist()


def written_before_it_is_received(comm):
    a = np.zeros(4)
    if comm.rank == 0:
        comm.Send(np.ones(4), 1)
    elif comm.rank == 1:
        request = comm.Irecv(a, 0)  # here
        a[0] = 7
        request.Wait()
    return a.tolist()


def written_once_it_is_received(comm):
    a = np.zeros(4)
    if comm.rank == 0:
        comm.Send(np.ones(4), 1)
    elif comm.rank == 1:
        request = comm.Irecv(a, 0)
        request.Wait()
        a[0] = 7
    return a.tolist()


def cleared_before_it_arrives(comm):
    a = np.ones(4)
    if comm.rank == 0:
        request = comm.Irecv(a, 1)  # here
        a[:] = 0
        request.Wait()
    elif comm.rank == 1:
        comm.Send(a, 0)


def cleared_before_it_is_asked_for(comm):
    a = np.ones(4)
    if comm.rank == 0:
        a[:] = 0
        request = comm.Irecv(a, 1)
        request.Wait()
    elif comm.rank == 1:
        comm.Send(a, 0)
    return a.tolist()


def read_before_it_is_received(comm):
    a = np.zeros(4)
    if comm.rank == 1:
        comm.Send(np.ones(4), 0)
        return None
    request = comm.Irecv(a, 1) if comm.rank == 0 else None  # here
    total = a.sum()
    if comm.rank == 0:
        request.Wait()
    return float(total)


def read_once_it_is_received(comm):
    a = np.zeros(4)
    if comm.rank == 1:
        comm.Send(np.ones(4), 0)
        return None
    request = comm.Irecv(a, 1) if comm.rank == 0 else None
    if comm.rank == 0:
        request.Wait()
    return float(a.sum())


def passed_on_before_it_is_received(comm):
    a, b = np.full(4, comm.rank), np.zeros(4, int)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    request = comm.Irecv(b, left)  # here
    comm.Send(a, right)
    a += b
    request.Wait()
    return a.tolist()


def passed_on_once_it_is_received(comm):
    a, b = np.full(4, comm.rank), np.zeros(4, int)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    request = comm.Irecv(b, left)
    comm.Send(a, right)
    request.Wait()
    a += b
    return a.tolist()


def from_and_to_one_array(comm):
    a, peer = np.full(4, comm.rank), comm.rank ^ 1
    if peer < comm.size:
        comm.Sendrecv(a, peer, 0, a, peer, 0)  # here


def from_and_to_two_arrays(comm):
    a, b, peer = np.full(4, comm.rank), np.zeros(4, int), comm.rank ^ 1
    if peer < comm.size:
        comm.Sendrecv(a, peer, 0, b, peer, 0)
    return b.tolist()


def answered_before_it_is_received(comm):
    a = np.zeros(4)
    if comm.rank == 0:
        request = comm.Irecv(a, 1)
        comm.Send(a, 1)  # here
        request.Wait()
    elif comm.rank == 1:
        comm.Send(np.ones(4), 0)
        comm.Recv(a, 0)


def answered_once_it_is_received(comm):
    a = np.zeros(4)
    if comm.rank == 0:
        request = comm.Irecv(a, 1)
        request.Wait()
        comm.Send(a, 1)
    elif comm.rank == 1:
        comm.Send(np.ones(4), 0)
        comm.Recv(a, 0)
    return a.tolist()


def two_messages_in_one_place(comm):
    a = np.zeros(4)
    if comm.rank == 0:
        requests = [comm.Irecv(a, 1, tag) for tag in range(2)]  # here
        for request in requests:
            request.Wait()
    elif comm.rank == 1:
        for tag in range(2):
            comm.Send(a, 0, tag)


def two_messages_in_two_places(comm):
    a = np.zeros((2, 4))
    if comm.rank == 0:
        requests = [comm.Irecv(a[tag], 1, tag) for tag in range(2)]
        for request in requests:
            request.Wait()
    elif comm.rank == 1:
        for tag in range(2):
            comm.Send(a[tag], 0, tag)


def both_speak_first(comm):
    a, b, peer = np.ones(4), np.zeros(4), comm.rank ^ 1
    if peer < comm.size:
        comm.Send(a, peer)  # here
        comm.Recv(b, peer)


def one_speaks_first(comm):
    a, b, peer = np.ones(4), np.zeros(4), comm.rank ^ 1
    if comm.rank < peer < comm.size:
        comm.Send(a, peer)
        comm.Recv(b, peer)
    elif peer < comm.size:
        comm.Recv(b, peer)
        comm.Send(a, peer)


def all_pass_to_the_right(comm):
    a, b = np.ones(4), np.zeros(4)
    comm.Send(a, (comm.rank + 1) % comm.size)  # here
    comm.Recv(b, (comm.rank - 1) % comm.size)


def the_first_waits(comm):
    a, b = np.ones(4), np.zeros(4)
    if comm.rank == 0:
        comm.Recv(b, comm.size - 1)
    comm.Send(a, (comm.rank + 1) % comm.size)
    if comm.rank:
        comm.Recv(b, comm.rank - 1)


def letter_to_myself(comm):
    comm.send("word", dest=comm.rank)  # here
    return comm.recv(source=comm.rank)


def letter_to_myself_under_way(comm):
    request = comm.isend("word", dest=comm.rank)
    word = comm.recv(source=comm.rank)
    request.wait()
    return word


def tags_crossed(comm):
    a = np.ones(4)
    if comm.rank == 0:
        comm.Send(a, 1, 1)  # here
        comm.Send(a, 1, 2)
    elif comm.rank == 1:
        comm.Recv(a, 0, 2)
        comm.Recv(a, 0, 1)


def tags_in_order(comm):
    a = np.ones(4)
    if comm.rank == 0:
        comm.Send(a, 1, 1)
        comm.Send(a, 1, 2)
    elif comm.rank == 1:
        comm.Recv(a, 0, 1)
        comm.Recv(a, 0, 2)


PLANTED = {
    "local concurrency": [
        (0, changed_before_it_is_sent, changed_once_it_is_sent),
        (1, written_before_it_is_received, written_once_it_is_received),
        (0, cleared_before_it_arrives, cleared_before_it_is_asked_for),
        (0, read_before_it_is_received, read_once_it_is_received),
        (0, passed_on_before_it_is_received, passed_on_once_it_is_received),
        (0, from_and_to_one_array, from_and_to_two_arrays),
        (0, answered_before_it_is_received, answered_once_it_is_received),
        (0, two_messages_in_one_place, two_messages_in_two_places),
    ],
    "buffering hazard": [
        (0, both_speak_first, one_speaks_first),
        (0, all_pass_to_the_right, the_first_waits),
        (0, letter_to_myself, letter_to_myself_under_way),
        (0, tags_crossed, tags_in_order),
    ],
}
