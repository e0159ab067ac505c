"""Calls that the other side does not make, and requests that are not waited for once."""

import numpy as np


def in_another_order(comm):
    a = np.ones(2)
    if comm.rank == 0:
        comm.Bcast(a)
        comm.Barrier()
    else:
        comm.Barrier()  # here
        comm.Bcast(a)


def in_one_order(comm):
    a = np.ones(2)
    comm.Bcast(a)
    comm.Barrier()


def ends_early(comm):
    if comm.rank == 1:
        return
    comm.Barrier()  # here


def ends_like_the_others(comm):
    comm.Barrier()
    if comm.rank == 1:
        return
    np.ones(2).sum()


def root_alone(comm):
    a = np.ones(2)
    if comm.rank == 0:
        comm.Bcast(a)  # here


def root_and_all_others(comm):
    a = np.full(2, comm.rank)
    comm.Bcast(a)
    return a.tolist()


def one_message_too_many(comm):
    a = np.ones(2)
    if comm.rank == 0:
        for _ in range(2):
            comm.Recv(a, 1)
    elif comm.rank == 1:
        comm.Send(a, 0)
        comm.Send(a, 0)
        comm.Send(a, 0, 3)  # here


def as_many_messages(comm):
    a = np.ones(2)
    for _ in range(3):
        if comm.rank == 0:
            comm.Recv(a, 1)
        elif comm.rank == 1:
            comm.Send(a, 0)


def never_sent(comm):
    a = np.ones(2)
    if comm.rank == 0:
        comm.Send(a, 1, 1)
    elif comm.rank == 1:
        comm.Recv(a, 0, 1)
        comm.Recv(a, 0, 2)  # here


def tags_that_are_sent(comm):
    a = np.ones(2)
    for tag in (1, 2):
        if comm.rank == 0:
            comm.Send(a, 1, tag)
        elif comm.rank == 1:
            comm.Recv(a, 0, tag)


def both_listen(comm):
    a = np.ones(2)
    comm.Recv(a, (comm.rank + 1) % comm.size)  # here
    comm.Send(a, (comm.rank - 1) % comm.size)


def one_listens(comm):
    a = np.ones(2)
    if comm.rank == 0:
        comm.Recv(a, 1)
        comm.Send(a, 1)
    elif comm.rank == 1:
        comm.Send(a, 0)
        comm.Recv(a, 0)


def send_not_waited_for(comm):
    a = np.ones(2)
    if comm.rank == 0:
        comm.Isend(a, 1)  # here
    elif comm.rank == 1:
        comm.Recv(a, 0)


def send_waited_for(comm):
    a = np.ones(2)
    if comm.rank == 0:
        comm.Isend(a, 1).Wait()
    elif comm.rank == 1:
        comm.Recv(a, 0)


def only_the_last_one(comm):
    a = np.ones((3, 2))
    if comm.rank == 0:
        for row in a:
            comm.Send(row, 1)
    elif comm.rank == 1:
        for row in a:
            request = comm.Irecv(row, 0)  # here
        request.Wait()


def every_one(comm):
    a = np.ones((3, 2))
    if comm.rank == 0:
        for row in a:
            comm.Send(row, 1)
    elif comm.rank == 1:
        for request in [comm.Irecv(row, 0) for row in a]:
            request.Wait()


def waited_for_twice(comm):
    a = np.ones(2)
    if comm.rank == 0:
        comm.Send(a, 1)
    elif comm.rank == 1:
        request = comm.Irecv(a, 0)
        request.Wait()
        request.Wait()  # here


def tested_until_done(comm):
    a = np.ones(2)
    if comm.rank == 0:
        comm.Send(a, 1)
    elif comm.rank == 1:
        request = comm.Irecv(a, 0)
        while not request.Test():
            pass


def waited_for_after_a_test(comm):
    if comm.rank == 0:
        request = comm.irecv(source=1)
        while not request.test()[0]:
            pass
        return request.wait()  # here
    return comm.send("word", dest=0) if comm.rank == 1 else None


def tested_for_its_object(comm):
    if comm.rank == 0:
        request, done = comm.irecv(source=1), False
        while not done:
            done, word = request.test()
        return word
    return comm.send("word", dest=0) if comm.rank == 1 else None


PLANTED = {
    "call matching": [
        (1, in_another_order, in_one_order),
        (0, ends_early, ends_like_the_others),
        (0, root_alone, root_and_all_others),
        (1, one_message_too_many, as_many_messages),
        (1, never_sent, tags_that_are_sent),
        (0, both_listen, one_listens),
    ],
    "request lifecycle": [
        (0, send_not_waited_for, send_waited_for),
        (1, only_the_last_one, every_one),
        (1, waited_for_twice, tested_until_done),
        (0, waited_for_after_a_test, tested_for_its_object),
    ],
}
