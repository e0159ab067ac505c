"""Collectives beside computing, and other reductions than sums."""

import numpy as np
import pytest

from cnnlab.ranks.virtual import Link, World

SLOW = Link(latency=0.1, bandwidth=1e6)


def overlapped(comm, seconds):
    a, total = np.arange(9.0) + comm.rank, np.zeros(9)
    request = comm.Iallreduce(a, total)
    comm.compute(seconds)
    early = total.sum()
    request.Wait()
    return comm.clock(), early, total.tolist()


@pytest.mark.parametrize("size", [2, 5, 8])
def test_messages_are_under_way_while_the_rank_computes(size):
    alone = max(clock for clock, *_ in World(size, SLOW).run(overlapped, 0.0))
    assert alone > 0.1
    for clock, early, total in World(size, SLOW).run(overlapped, alone + 1):
        assert clock == pytest.approx(alone + 1) and early == 0
        assert total == [sum(i + r for r in range(size)) for i in range(9)]
    half = max(clock for clock, *_ in World(size, SLOW).run(overlapped, alone / 2))
    assert half == pytest.approx(alone)


def test_several_may_be_under_way_and_be_asked_for():
    def program(comm):
        a, totals = np.ones(20_000), np.zeros((3, 20_000))
        requests = [comm.Iallreduce(a, total) for total in totals]
        last = comm.Ibarrier()
        n = 0
        while not last.Test():
            comm.compute(0.01)
            n += 1
        for request in requests:
            request.Wait()
        return n > 3, totals.min(), totals.max()

    assert World(4, SLOW).run(program) == [(True, 4, 4)] * 4


@pytest.mark.parametrize("which", ["sent", "received"])
def test_its_arrays_are_to_be_left_alone(which):
    def program(comm):
        arrays = {"sent": np.ones(4), "received": np.zeros(4)}
        request = comm.Iallreduce(*arrays.values())
        arrays[which][0] = 7
        request.Wait()

    with pytest.raises(
        ValueError, match=r"left alone until Wait, .*changed one of this Iallreduce"
    ):
        World(2).run(program)


def test_one_that_nobody_waits_for_is_found():
    with pytest.raises(RuntimeError, match="Iallreduce that is never waited for"):
        World(2).run(lambda comm: comm.Iallreduce(np.ones(2), np.ones(2)) and None)


def test_ranks_that_ask_for_different_reductions_are_told():
    def program(comm):
        comm.Allreduce(np.ones(2), np.ones(2), ("SUM", "MAX")[comm.rank])

    with pytest.raises(
        ValueError, match=r"Allreduce of 2 float64 by SUM as on rank 0, got .* by MAX"
    ):
        World(2).run(program)


def test_computing_beside_it_is_measured_too():
    def program(comm):
        request = comm.Iallreduce(np.ones(3), np.zeros(3))
        before = comm.clock()
        sum(range(300_000))
        request.Wait()
        return comm.clock() - before

    assert min(World(2, Link(0, 1e12, 0), measured=True).run(program)) > 5e-4
