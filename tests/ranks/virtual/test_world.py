"""A world of ranks: their clocks, who goes on when, and what is measured."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

from cnnlab.ranks.virtual import Deadlock, Link, World

LINK = Link(latency=1.0, bandwidth=100.0, call=0.25, eager=400)


def one_message(n):
    def program(comm):
        a = np.zeros(n, np.uint8)
        if comm.rank == 0:
            comm.Send(a, 1)
        else:
            comm.compute(5)
            comm.Recv(a, 0)

    return program


@pytest.mark.parametrize(
    "n, sender, receiver",
    [
        (200, 0.25 + 2, 5.25),  # sent off, and there before it is asked for
        (500, 5.25 + 5, 5.25 + 5 + 1),  # waits for its receiver
    ],
)
def test_messages_take_their_time(n, sender, receiver):
    world = World(2, LINK)
    world.run(one_message(n))
    assert world.clocks == pytest.approx([sender, receiver])
    assert world.seconds == max(world.clocks)
    assert world.record.messages == [(0, 1, n, 0, world.clocks[1])]
    assert world.record.virtual and world.record.network == str(LINK)


def test_from_any_source_messages_come_in_the_order_of_their_arrival():
    def program(comm):
        if comm.rank == 0:
            return [comm.recv() for _ in range(comm.size - 1)]
        comm.compute((3, 1, 2)[comm.rank - 1])
        return comm.send(comm.rank, 0)

    assert World(4, LINK).run(program)[0] == [2, 3, 1]


@pytest.mark.parametrize("receiver", [0, 1, 2])
def test_from_any_source_one_waits_for_what_may_still_come_first(receiver):
    def program(comm):
        if comm.rank == receiver:
            return [comm.recv() for _ in range(2)]
        first = comm.rank == min({0, 1, 2} - {receiver})
        comm.compute(20 if first else 1)
        return comm.send("late" if first else "early", dest=receiver)

    assert World(3, LINK).run(program)[receiver] == ["early", "late"]


def test_a_world_runs_one_program_after_the_other():
    world = World(2, LINK)
    world.run(lambda comm: comm.Barrier())
    with pytest.raises(Deadlock):
        world.run(lambda comm: comm.recv(source=1 - comm.rank))
    before = world.seconds
    assert world.run(lambda comm: comm.allreduce(1)) == [2, 2]  # as if nothing had been
    assert world.seconds > before


@given(draw.integers(1, 7), draw.integers(0, 99))
@settings(max_examples=20)
def test_one_run_is_like_the_other_and_time_only_goes_on(size, seed):
    def program(comm):
        rng, clocks = np.random.default_rng([seed, comm.rank]), [comm.clock()]
        for kind in np.random.default_rng(seed).integers(0, 4, 12):
            comm.compute(rng.random() * 1e-3)
            if kind == 0:
                comm.Allreduce(np.ones(100), np.zeros(100))
            elif kind == 1:
                comm.sendrecv(clocks, (comm.rank + 1) % size, source=(comm.rank - 1) % size)
            elif kind == 2:
                comm.gather(rng.random())
            else:
                comm.Ibarrier().Wait()
            clocks.append(comm.clock())
        return clocks

    worlds = [World(size, jitter=0.3, seed=seed) for _ in range(2)]
    first, second = (world.run(program) for world in worlds)
    assert first == second and worlds[0].events == worlds[1].events
    assert worlds[0].record.messages == worlds[1].record.messages
    assert all(clocks == sorted(clocks) for clocks in first)
    for event in worlds[0].events:
        assert event.begin <= event.end <= worlds[0].seconds


def test_testing_lets_the_others_go_on_until_it_is_done():
    def program(comm):
        if comm.rank == 0:
            comm.compute(3.0)
            return comm.send("word", dest=1)
        request, asked = comm.irecv(source=0), 1
        while not (answer := request.test())[0]:
            assert answer == (False, None)
            asked += 1
        assert request.Test()  # it stays done
        return answer[1], asked, comm.clock()

    word, asked, clock = World(2, Link(1.0, 1e9, 0.25)).run(program)[1]
    assert word == "word" and asked == 17  # a quarter of a second each, from 1/4 to 4 1/4 and more
    assert clock == 4.5


@pytest.fixture
def impatient(monkeypatch):
    """A world that soon calls questions vain: a microsecond each, where a message takes 1,000."""
    monkeypatch.setattr("cnnlab.ranks.virtual.world.PATIENCE", 100)
    return Link(1e-3, 1e9, 1e-6)


@pytest.mark.parametrize("size", [2, 3])
def test_asking_is_not_in_vain_while_a_message_is_on_its_way_or_may_come(impatient, size):
    def program(comm):
        if comm.rank == 2:
            return comm.send("word", dest=0)
        if comm.rank == 0:
            return comm.send(comm.recv(source=2) if size == 3 else "word", dest=1)
        request, done = comm.irecv(source=0), False
        while not done:
            done, word = request.test()
        return word

    assert World(size, impatient).run(program)[1] == "word"


def test_asking_for_a_message_that_somebody_sends_later_is_no_deadlock(impatient):
    def program(comm):
        if comm.rank:
            comm.compute(0.01)
            return comm.send("word", dest=0)
        while not comm.iprobe(source=1):
            comm.compute(1e-6)
        return comm.recv(source=1)

    assert World(2, impatient).run(program)[0] == "word"


@pytest.mark.parametrize("size, n, seconds", [(2, 150, 1e-6), (20, 9, 0)])
def test_asking_for_a_while_before_sending_is_no_deadlock(impatient, size, n, seconds):
    def program(comm):
        for _ in range(0 if seconds and comm.rank else n):
            comm.iprobe()
            comm.compute(seconds)
        comm.Barrier()

    World(size, impatient).run(program)


@pytest.mark.parametrize("seconds", [0, 1e-6])
def test_asking_without_end_is_a_deadlock(impatient, seconds):
    def program(comm):
        request = comm.irecv(source=1 - comm.rank)
        while not request.test()[0]:
            comm.compute(seconds)

    with pytest.raises(Deadlock, match=r"^deadlock: rank 0 waits for rank 1 .*; rank 1 waits for"):
        World(2, impatient).run(program)


def test_a_long_message_meets_a_receive_from_any_source_while_its_rank_sends():
    def program(comm):
        a, b = np.ones(4), np.zeros(4)
        request = comm.Irecv(b) if comm.rank == 0 else None
        comm.Send(a, 1 - comm.rank)
        request.Wait() if comm.rank == 0 else comm.Recv(b, 0)
        return b.sum()

    assert World(2, Link(eager=0)).run(program) == [4, 4]


def test_measured_computing_passes_on_the_clock_also_beside_a_collective():
    def program(comm):
        sum(range(200_000))
        request = comm.Iallreduce(np.ones(3), np.zeros(3))
        before = comm.clock()
        sum(range(300_000))
        request.Wait()
        return comm.clock() - before

    world = World(2, Link(0, 1e12, 0), measured=True)
    assert min(world.run(program)) > 5e-4
    assert all(0 < clock < 10 for clock in world.clocks)


def test_what_the_world_does_within_a_call_is_not_measured(monkeypatch):
    now = [0.0]

    def slow_site():
        now[0] += 1.0  # of what a call takes, by this clock
        return "here", 1

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    for module in ("messages", "world", "faults"):
        monkeypatch.setattr(f"cnnlab.ranks.virtual.{module}.site", slow_site)

    def program(comm):
        a, b = np.zeros((2, 3), np.float32)
        comm.Sendrecv(a, 1 - comm.rank, 0, b, 1 - comm.rank, 0)
        request = comm.Isend(a, 1 - comm.rank)
        comm.Recv(b, 1 - comm.rank)
        request.Wait()
        comm.Allreduce(a, b)
        now[0] += 0.25  # of its own
        comm.Barrier()

    world = World(2, Link(0, 1e12, 0), measured=True)
    world.run(program)
    assert now[0] > 10 and max(world.clocks) < 1


def test_a_failure_says_whose_it_was():
    def program(comm):
        if comm.rank == 1:
            raise ZeroDivisionError("mine")
        comm.Barrier()

    with pytest.raises(ZeroDivisionError) as raised:
        World(3).run(program)
    assert raised.value.__notes__ == ["raised by rank 1 of 3, in the virtual world"]
