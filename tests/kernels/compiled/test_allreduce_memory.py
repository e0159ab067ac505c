"""Teams: who takes which images, the barrier, and the sums. Of ranks as a team, see test_job."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.kernels import threads
from cnnlab.kernels.compiled import allreduce_memory
from cnnlab.network import Network
from cnnlab.runtime import thread_pool
from cnnlab.training import train

SIZES = [n for n in (1, 2, 3, 8) if n <= thread_pool.size()]


def team(size, n=5, member=0):
    return allreduce_memory.Team(
        member,
        size,
        np.zeros((size, allreduce_memory.row(n)), np.float32),
        np.zeros(n, np.float32),
        allreduce_memory.counts(),
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n_images", [0, 1, 5, 16, 31, 50, 112, 113, 200])
def test_every_image_is_in_one_member_s_share(size, n_images):
    chosen = np.arange(n_images) * 3
    shares = [allreduce_memory.share(chosen, team(size, member=member)) for member in range(size)]
    assert (np.concatenate(shares) == chosen).all()
    unit = 16 if n_images >= 16 * size else 1
    assert max(map(len, shares)) - min(map(len, shares)) <= unit
    assert all(len(share) % unit == 0 for share in shares[:-1])


def test_alone_there_is_nothing_to_share():
    chosen, step = np.arange(5), np.ones(4, np.float32)
    assert (allreduce_memory.share(chosen, None) == chosen).all()
    assert (allreduce_memory.allreduce(step, None) == 1).all()


@numba.njit(parallel=True)
def rounds(parts, totals, counts, together, n, late, seen):
    """Each thread adds up n rounds of numbers, some threads after a while; `seen` (T,n,M)."""
    for t in numba.prange(len(parts)):
        me = np.int64(t)
        crew = allreduce_memory.Team(me, len(parts), parts, totals[me], counts)
        together[me] = allreduce_memory.all_here(crew)
        if together[me]:
            for k in range(n):
                for _ in range(late * ((me + k) % 3)):
                    allreduce_memory.read(counts.ctypes.data)
                for i in range(totals.shape[1]):
                    parts[me, i] = (me + 1) * 1000 + k + i
                total = allreduce_memory.allreduce(parts[me], crew)
                for i in range(total.size):
                    seen[me, k, i] = total[i]
                    total[i] = -1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("late", [0, 500])
def test_all_members_get_every_sum(size, late):
    n, m = 300, 70
    parts, totals = (
        np.zeros((size, allreduce_memory.row(m)), np.float32),
        np.zeros((size, m), np.float32),
    )
    together, seen = np.zeros(size, bool), np.zeros((size, n, m), np.float32)
    with thread_pool.threads(size):
        for _ in range(3):
            counts = allreduce_memory.counts()
            rounds(parts, totals, counts, together, n, late, seen)
            if numba.threading_layer() != "tbb" or size <= thread_pool.usable_cores():
                assert together.all()
            expected = (np.arange(size)[:, None, None] + 1) * 1000.0
            expected = (expected + np.arange(n)[:, None] + np.arange(m)).sum(0)
            for member in range(size):
                np.testing.assert_array_equal(seen[member], expected if together.all() else 0)


def test_sums_are_taken_in_the_order_of_the_members():
    parts = np.float32([[1e8, 1], [1, 2], [-1e8, 3]])
    total = np.empty(2, np.float32)
    allreduce_memory.add_up(parts, total)
    assert total.tolist() == [0, 6]  # 1e8 + 1 is 1e8 in float32
    allreduce_memory.add_up(parts[[0, 2, 1]], total)
    assert total.tolist() == [1, 6]


def test_members_that_come_one_after_the_other_are_told_so():
    first = team(2)
    second = team(2, member=1)._replace(counts=first.counts)
    assert not allreduce_memory.all_here(first)  # gives up, and so must the one that comes later
    assert not allreduce_memory.all_here(second)
    assert first.counts[allreduce_memory.ROLL] >= allreduce_memory.OFF
    assert allreduce_memory.all_here(team(1))


def test_operations_that_nothing_comes_between():
    @numba.njit
    def all_three(numbers):
        address = numbers[1:].ctypes.data
        was = allreduce_memory.add(address, 5)
        refused = allreduce_memory.swap(address, 0, 9)
        taken = allreduce_memory.swap(address, 7, 20)
        return was, refused, taken, allreduce_memory.read(address)

    numbers = np.array([1, 2, 3])
    assert all_three(numbers) == (2, 7, 7, 20) and numbers.tolist() == [1, 20, 3]


@numba.njit(parallel=True)
def count_together(counts, n):
    for _ in numba.prange(8):
        for _k in range(n):
            allreduce_memory.add(counts.ctypes.data, 1)


@pytest.mark.skipif(thread_pool.size() < 2, reason="Numba has room for one thread only")
def test_no_count_is_lost():
    counts = np.zeros(8, np.int64)
    count_together(counts, 100_000)
    assert counts.tolist() == [800_000] + [0] * 7


@pytest.mark.parametrize("n_threads", [n for n in (2, 3) if n <= thread_pool.size()])
def test_threads_that_take_turns_find_the_same_bits(n_threads, monkeypatch):
    digits = load("digits", 330)

    def trained():
        return train(digits, "threads", batch=50, epochs=2, n_threads=n_threads, progress=False)

    as_a_team = trained()
    monkeypatch.setattr(threads, "team_steps", lambda *arguments: None)
    in_turns = trained()
    assert (as_a_team.params.flat == in_turns.params.flat).all()
    losses = [[row["loss"] for row in run.history] for run in (as_a_team, in_turns)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


@pytest.mark.skipif(thread_pool.size() < 2, reason="Numba has room for one thread only")
def test_a_team_is_tried_and_then_not_again():
    digits, net = load("digits", 64, 10), Network()
    with thread_pool.threads(2):
        own, at = threads.places(net.parameters(), digits.train_images)
        arguments = digits.train_images, digits.train_labels, np.arange(64), 32, 0.1
        everything = net.zeros().flat, net.zeros(), *arguments
        for _ in range(2):
            assert threads.team_steps(*everything, own, at) is not None
            assert at.counts[allreduce_memory.ROLL] == 2  # called anew each time
        fresh = at._replace(counts=allreduce_memory.counts())
        fresh.counts[allreduce_memory.ROLL] = allreduce_memory.OFF + 1
        before = fresh.params.copy()
        assert threads.team_steps(*everything, own, fresh) is None
        assert (fresh.params == before).all() and fresh.counts[
            allreduce_memory.ROLL
        ] == allreduce_memory.OFF + 1


def test_fewer_threads_than_asked_for_end_in_no_deadlock():
    """OpenMP may be told to give one thread only; other layers give two whatever it says."""
    program = """
from cnnlab.data import load
from cnnlab.training import train
run = train(load("digits", 64, 10), "threads", batch=32, n_threads=2, progress=False)
print(run.params.flat.tobytes().hex())
"""
    found = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"NUMBA_NUM_THREADS": "2"} | limit,
            capture_output=True,
            text=True,
            timeout=300,
        )
        for limit in ({}, {"OMP_THREAD_LIMIT": "1"})
    ]
    assert found[0].stdout == found[1].stdout != "", found[1].stderr
