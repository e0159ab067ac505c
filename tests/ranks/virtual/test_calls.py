"""What virtual ranks compute is what real ones compute: the same program in each world."""

import pickle

import pytest

from cnnlab.ranks.cluster import cluster
from cnnlab.ranks.virtual import World
from tests.ranks.programs import run
from tests.ranks.virtual.calls import every_call, windows

MOST = 17
SIZES = """
import pickle
import sys

from mpi4py import MPI
from tests.ranks.virtual.calls import every_call, windows

results = {}
for size in range(1, 18):
    comm = MPI.COMM_WORLD.Split(0 if MPI.COMM_WORLD.rank < size else MPI.UNDEFINED)
    if comm != MPI.COMM_NULL:
        results[size] = every_call(comm), windows(comm) if size in (1, 2, 3, 8) else None
        comm.Free()
results = MPI.COMM_WORLD.gather(results)
if results:
    with open(sys.argv[1], "wb") as file:
        pickle.dump(results, file)
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """What each rank got, by the number of ranks: one job, whose ranks split into fewer."""
    path = tmp_path_factory.mktemp("calls") / "results"
    run(MOST, "-c", SIZES, str(path))
    return pickle.loads(path.read_bytes())


@pytest.mark.mpi
@pytest.mark.parametrize("size", range(1, MOST + 1))
def test_virtual_ranks_get_what_real_ones_get(real, size):
    for rank, found in enumerate(World(size).run(every_call)):
        expected = real[rank][size][0]
        assert found.keys() == expected.keys()
        for call, result in found.items():
            assert result == expected[call], f"{call} on rank {rank} of {size}"


@pytest.mark.mpi
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_windows_hold_what_real_ones_hold(real, size):
    assert World(size).run(windows) == [real[rank][size][1] for rank in range(size)]


@pytest.mark.mpi
def test_the_ranks_of_a_notebook_get_the_same():
    with cluster(2) as two:
        found = two.run(in_a_notebook)
    assert found == World(2).run(lambda comm: (every_call(comm), windows(comm)))


def in_a_notebook():
    from mpi4py import MPI

    return every_call(MPI.COMM_WORLD), windows(MPI.COMM_WORLD)
