"""Collectives on ranks, and what allreduce refuses before it sends anything."""

import numpy as np
import pytest

from cnnlab.ranks import Alone
from cnnlab.ranks.collectives import allreduce
from tests.ranks.programs import run

READ_ONLY = np.zeros(3, np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "array, error, words",
    [
        ([0.0], TypeError, "array: expected a NumPy array of float32 or float64, got list"),
        (np.zeros(3, int), TypeError, "array: expected .* got int64"),
        (np.zeros((3, 2))[:, 0], ValueError, r"array: expected a C-contiguous, .* strides \(16,\)"),
        (READ_ONLY, ValueError, "array: expected a C-contiguous, writeable array, got a read-only"),
    ],
)
def test_an_unfit_array_is_refused(array, error, words):
    with pytest.raises(error, match=words):
        allreduce(Alone(), array)


COLLECTIVES = """
import numpy as np
from mpi4py import MPI
from cnnlab.check import collective
from cnnlab.ranks import measure
from cnnlab.ranks.collectives import allreduce, broadcast
from cnnlab.ranks.schedules import SCHEDULES

comm = MPI.COMM_WORLD
for schedule in SCHEDULES:
    for dtype, close in ((np.float32, 1e-5), (np.float64, 1e-14)):
        for n in (0, 1, 2, 3, 5, 7, 64, 1001):
            mine = np.random.default_rng([comm.rank, n]).uniform(0.5, 1, n).astype(dtype)
            expected, before = np.empty_like(mine), mine.copy()
            comm.Allreduce(mine, expected)
            allreduce(comm, mine, schedule)
            np.testing.assert_allclose(mine, expected, rtol=close)
            bits = comm.allgather(mine.tobytes())
            assert len(set(bits)) == 1, "ranks differ"
            again = before.copy()
            allreduce(comm, again, schedule)
            assert np.array_equal(again, mine)
    square = np.full((3, 4), comm.rank + 1.0)
    allreduce(comm, square, schedule)
    assert (square == comm.size * (comm.size + 1) / 2).all()
for root in range(comm.size):
    mine = np.full(3, comm.rank)
    broadcast(comm, mine, root)
    assert (mine == root).all()
for operation in collective.EXPECTED:  # by the library
    values = np.random.default_rng(0).random((comm.size, 7)).astype(np.float32)
    mine = values[comm.rank].copy()
    measure.mpi(operation)(comm, mine)
    assert collective.compare(operation, mine, values, comm.rank) == "", operation
if comm.rank == 0:
    print("good", comm.size)
"""


@pytest.mark.mpi
@pytest.mark.parametrize("n", [1, 3, 4])
def test_collectives_agree_with_mpis_from_any_root(n):
    assert run(n, "-c", COLLECTIVES)[0] == f"good {n}\n"
