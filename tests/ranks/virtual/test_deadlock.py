"""A deadlock names those who wait, for whom, for which tag, and where."""

import inspect

import numpy as np
import pytest

from cnnlab.ranks.virtual import Deadlock, World


def each_waits(comm):
    comm.Recv(np.zeros(1), (comm.rank + 1) % comm.size, 7)


def ends_early(comm):
    if comm.rank:
        comm.Recv(np.zeros(1), 0, 3)


def large_sends(comm):
    a = np.zeros(10_000)
    comm.Send(a, 1 - comm.rank)
    comm.Recv(a, 1 - comm.rank)


@pytest.mark.parametrize(
    "program, size, text",
    [
        (
            each_waits,
            3,
            r"rank 0 waits for rank 1 \(receive, tag 7, test_deadlock.py:\d+\); rank 1 ",
        ),
        (
            ends_early,
            2,
            r"rank 1 waits for rank 0 which has ended \(receive, tag 3, test_deadlock",
        ),
        (large_sends, 2, r"rank 0 waits for rank 1 \(send, tag 0, .*rank 1 waits for rank 0 "),
    ],
)
def test_a_deadlock_says_who_waits_for_whom(program, size, text):
    with pytest.raises(Deadlock, match=f"^deadlock: {text}"):
        World(size).run(program)


def waiting(comm):
    if comm.rank in (1, 2):
        comm.Recv(np.ones(1), 3 - comm.rank, 4)
    comm.Barrier()


def test_a_deadlock_names_its_circle_first_and_the_collective_of_others():
    with pytest.raises(Deadlock) as raised:
        World(4).run(waiting)
    one, two, *others = str(raised.value).split("; ")
    first = inspect.getsourcelines(waiting)[1]
    at, barrier = f"test_deadlock.py:{first + 2}", f"test_deadlock.py:{first + 3}"
    assert one == f"deadlock: rank 1 waits for rank 2 (receive, tag 4, {at})"
    assert two == f"rank 2 waits for rank 1 (receive, tag 4, {at})"
    assert others[0] == f"rank 0 waits for rank 2 (in Barrier, {barrier})"
    assert raised.value.faults[0][:3] == ("call matching", 1, at)


def waits_later(comm):
    request = comm.Irecv(np.zeros(1), 1 - comm.rank)
    request.Wait()


def test_a_deadlock_names_the_wait_and_not_what_began_the_message():
    place = f"test_deadlock.py:{inspect.getsourcelines(waits_later)[1] + 2}"
    with pytest.raises(Deadlock, match=place):
        World(2).run(waits_later)
