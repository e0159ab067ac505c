"""Windows in the virtual world: what they cost, and what two ranks may do at one place."""

import re
from functools import partial

import numpy as np
import pytest

from cnnlab.ranks import mpi
from cnnlab.ranks.virtual import Link, World, examine
from cnnlab.ranks.virtual.faults import leaks

LINK = Link(latency=1.0, bandwidth=8.0, call=0.125)


def made(comm, n=4):
    return mpi.Win.Create(np.zeros(n), 8, comm=comm)


def put_to_next(comm, n):
    window = made(comm)
    window.Lock((comm.rank + 1) % comm.size)
    before = comm.clock()
    window.Put(np.ones(n), (comm.rank + 1) % comm.size)
    called = comm.clock()
    window.Flush((comm.rank + 1) % comm.size)
    done = comm.clock()
    window.Unlock((comm.rank + 1) % comm.size)
    window.Free()
    return called - before, done - before


def test_a_put_costs_a_call_and_its_message_is_waited_for_by_flush():
    for call, done in World(2, LINK).run(put_to_next, 2):
        assert call == 0.125 and done == pytest.approx(0.125 + 2 + 2)  # there, and back a word


def test_what_is_fetched_is_seen_after_flush():
    def program(comm):
        window, got = made(comm), np.full(1, -1.0)
        window.Lock(0, mpi.LOCK_SHARED)
        window.Get(got, 0, 3)
        early = got[0]
        window.Unlock(0)
        window.Free()
        return early, got[0]

    assert World(3, LINK).run(program) == [(-1, 0)] * 3


def test_exclusive_locks_come_one_after_the_other():
    def program(comm):
        window, seen = made(comm), np.zeros(1)
        comm.compute(0.1 * comm.rank)
        window.Lock(0)
        window.Get(seen, 0)
        window.Flush(0)
        comm.compute(10)
        window.Put(seen + 1, 0)
        window.Unlock(0)
        window.Free()
        return seen[0]

    world = World(5, LINK)
    assert world.run(program) == [0, 1, 2, 3, 4] and world.seconds > 50


def both_put(comm):
    window = made(comm)
    window.Fence()
    window.Put(np.ones(1), 0, comm.rank // 2)  # here
    window.Fence()
    window.Free()


def put_and_get(comm):
    window = made(comm)
    window.Lock_all()
    if comm.rank == 1:
        window.Put(np.ones(2), 2, 1)
    elif comm.rank == 2:
        window.Get(np.ones(1), 2, 2)  # here
    window.Unlock_all()
    window.Free()


def not_flushed(comm):
    window = made(comm)
    window.Lock_all()
    if comm.rank == 0:
        window.Put(np.ones(1), 2)
    comm.Barrier()
    if comm.rank == 1:
        window.Accumulate(np.ones(1), 2)  # here
    window.Unlock_all()
    window.Free()


@pytest.mark.parametrize(
    "program, ranks, place",
    [(both_put, {0, 1}, "0 to 7 of rank 0"), (put_and_get, {1, 2}, "16 to 23 of rank 2"),
     (not_flushed, {0, 1}, "0 to 7 of rank 2")],
)  # fmt: skip
def test_two_ranks_at_one_place_are_named(program, ranks, place):
    with pytest.raises(RuntimeError, match=f"expected one at a time at bytes {place}") as raised:
        World(3).run(program)
    (fault,) = raised.value.faults
    assert fault.kind == "global concurrency" and fault.rank in ranks
    assert fault.line.startswith("test_window.py:")
    assert [other.kind for other in examine(program, 3)] == [fault.kind]
    for rank in ranks:
        assert f"of rank {rank} (test_window.py:" in str(raised.value)


def in_an_epoch(call, then):
    """A program that makes a call with an array, then something else, and ends the epoch."""

    def program(comm):
        window, array = made(comm), np.ones(1)
        window.Fence()
        getattr(window, call)(array, (comm.rank + 1) % comm.size)
        seen = then(window, array)
        window.Fence()
        window.Free()
        return seen

    return program


def fetched_and_read(comm):
    window, before = made(comm), np.zeros(1)
    window.Lock_all()
    window.Fetch_and_op(np.ones(1), before, 0, comm.rank)
    early = before[0]
    window.Unlock_all()
    window.Free()
    return early


def ended(comm, call):
    window = made(comm)
    window.Free()
    getattr(window, call)()


def changed(window, array):
    array[0] = 5


LOCAL, INVALID = "local concurrency", "invalid parameter"


@pytest.mark.parametrize(
    "program, kind, said",
    [
        *(
            (in_an_epoch(call, changed), LOCAL, "expected an array left alone until")
            for call in ("Put", "Get", "Accumulate")
        ),
        (in_an_epoch("Get", lambda window, array: array[0]), LOCAL, "this Get is read"),
        (fetched_and_read, LOCAL, "this Fetch_and_op is read"),
        (in_an_epoch("Put", lambda window, array: window.Free()), INVALID, "or Fence before"),
        (lambda comm: made(comm).Put(np.ones(1), 0), INVALID, "window: expected Lock or"),
        (lambda comm: made(comm).Unlock_all(), INVALID, "expected Lock_all before"),
        *(
            (partial(ended, call=call), INVALID, "is freed")
            for call in ("Flush_all", "Lock_all", "Unlock_all")
        ),
        (lambda comm: (window := made(comm)).Lock(0) or window.Free(), INVALID, "Unlock or"),
    ],
)
def test_arrays_of_calls_under_way_and_ends_that_are_missing_are_named(program, kind, said):
    fault = examine(program, 2)[0]
    assert fault.kind == kind and said in fault.text and fault.line.startswith("test_window.py:")


def received_into_a_part(comm, barrier=False):
    memory = np.zeros(4)
    window = mpi.Win.Create(memory, 8, comm=comm)
    window.Fence()
    if comm.rank == 0:
        comm.Send(np.ones(1), 1)
        if barrier:
            window.Fence()
        window.Put(np.ones(2), 1, 1)
    elif comm.rank == 1:
        comm.Recv(memory[2:3], 0)  # here
        if barrier:
            window.Fence()
    window.Fence()
    window.Free()


def summed_into_a_part(comm, barrier=False):
    memory = np.zeros(4)
    window = mpi.Win.Create(memory, 8, comm=comm)
    window.Fence()
    if comm.rank == 0:
        window.Put(np.ones(2), 1, 1)
    if barrier:
        window.Fence()
    comm.Allreduce(np.ones(4), memory)
    window.Fence()
    window.Free()


def test_nor_one_that_a_collective_fills():
    fault = examine(summed_into_a_part, 2)[0]
    assert fault.kind == "global concurrency" and "Receive of rank 1" in fault.text
    assert examine(partial(summed_into_a_part, barrier=True), 2) == []


def test_a_part_that_its_owner_receives_into_is_reached_by_nobody_else():
    (fault, *_), said = examine(received_into_a_part, 2), "at bytes 16 to 23 of rank 1"
    assert fault.kind == "global concurrency" and said in fault.text
    assert {"Put of rank 0", "Receive of rank 1"} <= set(re.findall(r"\w+ of rank \d", fault.text))
    assert examine(partial(received_into_a_part, barrier=True), 2) == []


def other_places(comm):
    window = made(comm)
    window.Fence()
    window.Put(np.ones(1), 0, comm.rank)
    window.Fence()
    window.Free()


def get_and_put(comm):
    window, array = made(comm), np.ones(1)
    window.Fence()
    window.Get(array, (comm.rank + 1) % comm.size)
    window.Fence()
    window.Put(array + 1, (comm.rank + 1) % comm.size, 2)
    window.Fence()
    window.Free()
    return array[0]


def accumulate(comm):
    window, before = made(comm), np.zeros(1)
    window.Lock_all()
    window.Accumulate(np.ones(2), 0)
    window.Fetch_and_op(np.ones(1), before, 0, 1)
    window.Unlock_all()
    window.Free()


def flushed(comm):
    window = made(comm)
    window.Lock_all()
    if comm.rank == 0:
        window.Put(np.ones(1), 2)
        window.Flush(2)
        comm.send("written", 1)
    elif comm.rank == 1:
        comm.recv(source=0)
        window.Put(np.ones(1), 2)
    window.Unlock_all()
    window.Free()


@pytest.mark.parametrize("program", [other_places, get_and_put, accumulate, flushed])
def test_their_correct_twins_raise_nothing(program):
    world = World(3)
    world.run(program)
    assert leaks(world) == [] == examine(program, 3)


def test_what_mpi_may_let_pass_is_refused():
    def outside(comm):
        window = made(comm)
        window.Fence()
        window.Put(np.ones(2), 0, 3)

    def twice(comm):
        window = made(comm)
        window.Lock(0, mpi.LOCK_SHARED)
        window.Lock(0, mpi.LOCK_SHARED)

    for program, text in (
        (outside, "target: expected a place in 32 bytes of rank 0, got 16 bytes from 24 on"),
        (twice, "lock: expected a part that is not locked"),
    ):
        with pytest.raises(ValueError, match=text):
            World(2).run(program)
    with pytest.raises(AttributeError, match=r"win\.Sync: the virtual world does not know it"):
        World(1).run(lambda comm: made(comm).Sync())


def test_a_lock_that_is_never_given_back_is_a_deadlock():
    def program(comm):
        made(comm).Lock(0)

    with pytest.raises(RuntimeError, match=r"deadlock: rank 1 waits for rank 0 .*Lock"):
        World(2).run(program)


def test_a_window_that_is_never_freed_is_a_leak():
    world = World(2)
    world.run(lambda comm: made(comm) and None)
    assert [fault.rank for fault in leaks(world)] == [0, 1]
