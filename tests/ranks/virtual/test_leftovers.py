"""What a run leaves at its end is told: rank, line, and what."""

import inspect

import numpy as np
import pytest

from cnnlab.ranks.virtual import Fault, Faulty, World
from cnnlab.ranks.virtual.leftovers import leaks


def line(program, offset):
    return f"test_leftovers.py:{inspect.getsourcelines(program)[1] + offset}"


def forgetful(comm):
    if comm.rank == 0:
        comm.send("word", dest=1, tag=3)
        comm.Bcast(np.ones(2))
        comm.Irecv(np.zeros(1), 1)


def test_what_is_left_at_the_end_is_told_all_at_once():
    with pytest.raises(Faulty) as raised:
        World(2).run(forgetful)
    assert raised.value.faults == [
        Fault(
            "call matching", 0, line(forgetful, 3),
            "Bcast of 2 float64 with root 0: expected on all 2 ranks, never on rank 1",
        ),
        Fault(
            "call matching", 0, line(forgetful, 2),
            "a message to rank 1 with tag 3 that is never received",
        ),
        Fault(
            "request lifecycle", 0, line(forgetful, 4), "a receive that is never waited for"
        ),
    ]  # fmt: skip
    assert str(raised.value).startswith(f"call matching: rank 0, {line(forgetful, 3)}: Bcast of 2 ")


def keeping(comm):
    halves = [comm.Split(comm.rank % 2) for _ in range(2)]
    if comm.rank == 0:
        halves[0].Free()


def test_communicators_that_are_never_freed_are_told_when_asked_for():
    world = World(2)
    world.run(keeping)
    what = "a communicator of Split is never freed"
    told = [(0, what), (1, what), (1, what)]
    assert leaks(world) == [
        Fault("resource leak", rank, line(keeping, 1), text) for rank, text in told
    ]
