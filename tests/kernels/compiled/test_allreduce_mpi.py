"""MPI from compiled kernels: who takes which images, and what comes back. See also test_job."""

import ctypes

import numba
import numpy as np
import pytest
from mpi4py import MPI

from cnnlab.kernels.compiled import allreduce_mpi
from cnnlab.ranks.schedules import block


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n_images", [0, 1, 5, 16, 50])
def test_every_image_is_in_one_rank_s_share(size, n_images):
    chosen, alone = np.arange(n_images) * 3, allreduce_mpi.between(MPI.COMM_SELF, 1, 4)
    two = allreduce_mpi.between(MPI.COMM_SELF, 2, 4)
    for rank in range(size):
        first, last = block(rank, size, n_images)
        whole = allreduce_mpi.share(chosen, alone._replace(rank=rank, size=size), 0)
        assert (whole == chosen[first:last]).all() and whole.size == last - first
        halves = [
            allreduce_mpi.share(chosen, two._replace(rank=rank, size=size), part) for part in (0, 1)
        ]
        assert (np.concatenate(halves) == whole).all() and len(halves[0]) == len(whole) // 2


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_parts_are_added_up(parts):
    ranks = allreduce_mpi.between(MPI.COMM_SELF, parts, 5)
    assert allreduce_mpi.parts(ranks) == parts
    step = np.empty(5, np.float32)
    for part in range(parts):
        step[:] = np.arange(5) + 10**part
        allreduce_mpi.send(step, ranks, part)
    if parts > 1:
        step[:] = np.nan  # all is on its way
    allreduce_mpi.receive(step, ranks)
    assert (step == parts * np.arange(5) + [0, 1, 11, 111][parts]).all()


def test_without_ranks_there_is_nothing_to_say():
    step, chosen = np.arange(4, dtype=np.float32), np.arange(3)
    assert allreduce_mpi.parts(None) == 1 and (allreduce_mpi.share(chosen, None, 0) == chosen).all()
    allreduce_mpi.send(step, None, 0)
    allreduce_mpi.receive(step, None)
    assert (step == np.arange(4)).all()


@pytest.mark.parametrize("parts", [1, 2])
def test_a_message_that_fails_is_an_error(parts):
    ranks = allreduce_mpi.between(MPI.COMM_SELF, parts, 5)
    kind, add, _ = ranks.handles
    nobody = ranks._replace(handles=(kind, add, MPI._handleof(MPI.COMM_NULL)))
    with pytest.raises(RuntimeError, match="MPI: the gradients could not be added up"):
        allreduce_mpi.send(np.zeros(5, np.float32), nobody, 0)


def test_a_function_is_called_by_its_address():
    @numba.njit
    def both(address, number, text):
        return allreduce_mpi.call(address, (number,)), allreduce_mpi.call(
            address, (text.ctypes.data,)
        )

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_ssize_t)
    seen = []
    function = kind(lambda word: seen.append(word) or 7)
    text = np.zeros(3, np.uint8)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert both(address, -5, text) == (7, 7) and seen == [-5, text.ctypes.data]
