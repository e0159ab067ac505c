"""Messages between virtual ranks, and what is refused of them."""

import sys

import numpy as np
import pytest

from cnnlab.ranks import mpi
from cnnlab.ranks.virtual import World


def test_an_array_may_be_changed_once_it_is_sent():
    def program(comm):
        if comm.rank == 0:
            a = np.ones(3)
            request = comm.Isend(a, 1)
            request.Wait()
            a[:] = 2
        else:
            comm.compute(1)
            a = np.zeros(3)
            comm.Recv(a, 0)
        return a.tolist()

    assert World(2).run(program) == [[2, 2, 2], [1, 1, 1]]


@pytest.mark.parametrize("running", [False, True])
def test_any_is_what_the_mpi_that_runs_calls_so(running, monkeypatch):
    """MPICH's number for any source, which is not Open MPI's."""

    class MPI:
        ANY_SOURCE, ANY_TAG = -2, -3

    if running:
        monkeypatch.setitem(sys.modules, "mpi4py.MPI", MPI)
    else:
        monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)

    def program(comm):
        if comm.rank:
            return comm.send(comm.rank, 0, tag=comm.rank)
        return sorted(comm.recv(source=mpi.ANY_SOURCE, tag=mpi.ANY_TAG) for _ in range(2))

    assert World(3).run(program)[0] == [1, 2]


def bad_rank(comm):
    comm.Send(np.zeros(1), comm.size)


def bad_array(comm):
    comm.Send([1.0], 0)


def strided(comm):
    comm.Recv(np.zeros((3, 3)).T, 0)


def other_order(comm):
    comm.Barrier() if comm.rank else comm.Bcast(np.zeros(1))


def other_root(comm):
    comm.Bcast(np.zeros(1), comm.rank)


def too_short(comm):
    if comm.rank == 0:
        comm.Send(np.zeros(4), 1)
    else:
        comm.Recv(np.zeros(2), 0)


@pytest.mark.parametrize(
    "program, error, text",
    [
        (bad_rank, ValueError, "dest: expected a rank from 0 to 1, got 2"),
        (bad_array, TypeError, "array: expected a NumPy array, got list"),
        (strided, ValueError, "array: expected a C-contiguous array, got strides"),
        (other_order, ValueError, "expected Bcast of 1 float64 with root 0 as on rank 0, got Bar"),
        (other_root, ValueError, "got Bcast of 1 float64 with root 1 on rank 1"),
        (too_short, ValueError, "expected at most 16 bytes from rank 0, got 32"),
    ],
)
def test_what_mpi_may_let_pass_is_refused(program, error, text):
    with pytest.raises(error, match=text) as raised:
        World(2).run(program)
    assert any("in the virtual world" in note for note in raised.value.__notes__)
