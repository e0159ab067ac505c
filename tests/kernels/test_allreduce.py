"""Teams of threads: the roll call, the barrier, the sums. Of ranks as a team, see test_job."""

import ctypes

import numba
import numpy as np
import pytest
from mpi4py import MPI

from cnnlab.kernels import allreduce
from cnnlab.kernels.allreduce import OFF, ROLL, Team, all_running, sum_by_mpi
from cnnlab.kernels.registers import LANES
from cnnlab.kernels.workers import ALONE, FEW, Workers, share
from cnnlab.kernels.workers import allreduce as over_workers
from cnnlab.runtime import thread_pool

SIZES = [n for n in (1, 2, 3, 8) if n <= thread_pool.size()]


def team(size, n=5):
    parts = np.zeros((size, allreduce.row(n)), np.float32)
    return Team(size, parts, np.zeros(n, np.float32), allreduce.counts())


@numba.njit(parallel=True)
def rounds(parts, totals, counts, together, n, late, seen):
    """Each thread adds up n rounds of numbers, some threads after a while; `seen` (T,n,M)."""
    for t in numba.prange(len(parts)):
        me = np.int64(t)
        crew = allreduce.Team(len(parts), parts, totals[me], counts)
        together[me] = allreduce.all_running(crew)
        if together[me]:
            for k in range(n):
                for _ in range(late * ((me + k) % 3)):
                    allreduce.read(counts.ctypes.data)
                for i in range(totals.shape[1]):
                    parts[me, i] = (me + 1) * 1000 + k + i
                total = allreduce.sum_in_memory(parts[me], crew)
                for i in range(total.size):
                    seen[me, k, i] = total[i]
                    total[i] = -1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("late", [0, 500])
def test_all_members_get_every_sum(size, late):
    n, m = 300, 70
    parts = np.zeros((size, allreduce.row(m)), np.float32)
    totals = np.zeros((size, m), np.float32)
    together, seen = np.zeros(size, bool), np.zeros((size, n, m), np.float32)
    with thread_pool.threads(size):
        for _ in range(3):
            rounds(parts, totals, allreduce.counts(), together, n, late, seen)
            if numba.threading_layer() != "tbb" or size <= thread_pool.usable_cores():
                assert together.all()
            expected = (np.arange(size)[:, None, None] + 1) * 1000.0
            expected = (expected + np.arange(n)[:, None] + np.arange(m)).sum(0)
            for member in range(size):
                np.testing.assert_array_equal(seen[member], expected if together.all() else 0)


def test_sums_are_taken_in_the_order_of_the_members():
    parts = np.float32([[1e8, 1], [1, 2], [-1e8, 3]])
    total = np.empty(2, np.float32)
    allreduce.add_up(parts, total)
    assert total.tolist() == [0, 6]  # 1e8 + 1 is 1e8 in float32
    allreduce.add_up(parts[[0, 2, 1]], total)
    assert total.tolist() == [1, 6]


def test_members_that_come_one_after_the_other_are_told_so():
    both = team(2)
    assert not all_running(both)  # gives up, and so must the one that comes later
    assert not all_running(both)
    assert both.counts[ROLL] >= OFF
    assert all_running(team(1))


def test_atomic_operations():
    @numba.njit
    def all_three(numbers):
        address = numbers[1:].ctypes.data
        previous = allreduce.add(address, 5)
        refused = allreduce.swap(address, 0, 9)
        taken = allreduce.swap(address, 7, 20)
        return previous, refused, taken, allreduce.read(address)

    numbers = np.array([1, 2, 3])
    assert all_three(numbers) == (2, 7, 7, 20) and numbers.tolist() == [1, 20, 3]


@numba.njit(parallel=True)
def count_together(counts, n):
    for _ in numba.prange(8):
        for _k in range(n):
            allreduce.add(counts.ctypes.data, 1)


@pytest.mark.skipif(thread_pool.size() < 2, reason="Numba has room for one thread only")
def test_no_count_is_lost():
    counts = np.zeros(8, np.int64)
    count_together(counts, 100_000)
    assert counts.tolist() == [800_000] + [0] * 7


def test_rows_and_counters_lie_on_cache_lines_of_their_own():
    for n in (1, 16, 17, 2428):
        row = allreduce.row(n)
        assert row % 16 == 0 and row - n >= 512
    counts = allreduce.counts()
    lines = {allreduce.ROLL // 8, allreduce.BARRIER // 8}
    assert not counts.any() and len(lines) == 2 and counts.size >= 8 * (max(lines) + 2)


def test_the_sum_over_one_rank_is_what_it_had():
    grads = np.arange(5, dtype=np.float32)
    total = sum_by_mpi(grads, allreduce.messages(MPI.COMM_SELF))
    assert np.shares_memory(total, grads) and (total == np.arange(5)).all()


def test_without_ranks_there_is_nothing_to_add_up():
    grads = np.arange(4, dtype=np.float32)
    assert (sum_by_mpi(grads, None) == np.arange(4)).all()


def test_what_mpi_is_told():
    """A function that takes the place of MPI_Allreduce notes its arguments."""
    seen, kind = [], ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_ssize_t] * 6)
    function = kind(lambda *arguments: seen.append(arguments) or 0)
    result = allreduce.messages(MPI.COMM_SELF)
    address = ctypes.cast(function, ctypes.c_void_p).value
    grads = np.zeros(7, np.float32)
    sum_by_mpi(grads, result._replace(function=address))
    handles = [MPI._handleof(item) for item in (MPI.FLOAT, MPI.SUM, MPI.COMM_SELF)]
    assert seen == [(int(MPI.IN_PLACE), grads.ctypes.data, 7, *handles)]


def test_a_message_that_fails_is_an_error():
    nobody = allreduce.messages(MPI.COMM_SELF)._replace(communicator=MPI._handleof(MPI.COMM_NULL))
    with pytest.raises(RuntimeError, match="MPI_Allreduce: the gradients could not be added up"):
        sum_by_mpi(np.zeros(5, np.float32), nobody)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n_images", [0, 1, 5, 16, 31, 50, 112, 113, 200])
@pytest.mark.parametrize("few", [None, True])
def test_every_image_is_in_one_worker_s_share(size, n_images, few):
    chosen = np.arange(n_images) * 3
    shares = [share(chosen, Workers(rank, size), few) for rank in range(size)]
    assert (np.concatenate(shares) == chosen).all()
    unit = LANES if few is None or n_images >= FEW * size else 1
    assert max(map(len, shares)) - min(map(len, shares)) <= unit
    assert all(len(block) % unit == 0 for block in shares[:-1])


@pytest.mark.parametrize("n_images", [0, 5, 16, 50, 112, 200])
def test_threads_share_what_is_their_rank_s(n_images):
    chosen, threads = np.arange(n_images), {0: 3, 1: 2}  # ranks may have as many as they like
    for rank, n_threads in threads.items():
        shares = [
            share(chosen, Workers(thread, n_threads, rank_of=(rank, 2)))
            for thread in range(n_threads)
        ]
        assert (np.concatenate(shares) == share(chosen, Workers(rank, 2))).all()


def test_alone_a_worker_takes_everything_and_keeps_its_gradients():
    chosen, grads = np.arange(5), np.arange(4, dtype=np.float32)
    assert (share(chosen, ALONE) == chosen).all()
    assert (over_workers(grads, ALONE) == np.arange(4)).all()
