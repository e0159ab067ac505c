import pytest

from cnnlab.check import collective
from cnnlab.ranks.cluster import cluster


def library_is_right():
    import numpy as np
    from mpi4py import MPI

    from cnnlab.check import collective
    from cnnlab.ranks import measure

    wrong = []
    for operation in collective.EXPECTED:
        values = np.random.default_rng(0).random((MPI.COMM_WORLD.size, 7)).astype(np.float32)
        array = values[MPI.COMM_WORLD.rank].copy()
        measure.mpi(operation)(MPI.COMM_WORLD, array)
        wrong.append(collective.compare(operation, array, values, MPI.COMM_WORLD.rank))
    return wrong


@pytest.mark.mpi
def test_the_librarys_own_is_right_for_every_operation():
    library_is_right.__module__ = "__main__"
    with cluster(3) as ranks:
        for result in ranks.run(library_is_right):
            assert result == [""] * len(collective.EXPECTED)
