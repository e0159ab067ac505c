import sys
import time

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from cnnlab import check, ranks
from cnnlab.kernels import partitioned
from cnnlab.ranks import cluster as module
from cnnlab.ranks import measure
from cnnlab.ranks.cluster import RankError, cluster


@pytest.fixture(autouse=True)
def no_mpiexec(monkeypatch):
    """A machine without mpiexec, as a laptop with Windows."""
    monkeypatch.setattr(module.sysconfig, "get_path", lambda name: "/nowhere")
    monkeypatch.setenv("PATH", "")


def as_with_mpi(ours, *, factor):
    from mpi4py import MPI

    comm, begin = MPI.COMM_WORLD, time.perf_counter()
    ours[0] += comm.rank
    print("of no interest")
    total = np.full(2, ours[0] * factor)
    comm.Allreduce(MPI.IN_PLACE, total, MPI.SUM)
    comm.compute(3.0)
    seconds = time.perf_counter() - begin, MPI.Wtime()
    return float(total[0]), seconds, MPI.COMM_SELF.allreduce(comm.rank), ranks.world() is comm


def test_without_mpiexec_ranks_are_virtual_and_say_so(capsys):
    before, clock, array = sys.modules.get("mpi4py.MPI"), time.perf_counter, np.ones(1)
    with cluster(3) as three:
        result = three.run(as_with_mpi, array, factor=2.0)
    assert capsys.readouterr().out.startswith("no mpiexec here: 3 virtual ranks")
    sums, seconds, alone, same = zip(*result, strict=True)
    assert sums == (12.0,) * 3 and alone == (0, 1, 2) and all(same)
    assert all(3 < later < 4 and 3 < now < 4 for later, now in seconds)
    assert array == 1  # each rank has its own
    assert sys.modules.get("mpi4py.MPI") is before and time.perf_counter is clock
    assert ranks.present is None


def waits_for_the_other():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.recv(source=1 - comm.rank)


def leaves_a_message():
    from mpi4py import MPI

    MPI.COMM_WORLD.isend("never received", 1 - MPI.COMM_WORLD.rank)


def divides():
    from mpi4py import MPI

    return 1 / (1 - MPI.COMM_WORLD.rank)


@pytest.mark.parametrize(
    "program, said",
    [
        (waits_for_the_other, "deadlock: rank 0 waits for rank 1"),
        (leaves_a_message, "rank 0"),
        (divides, r"rank 1 raised ZeroDivisionError: division by zero\n(.*\n)*.*in divides"),
    ],
)
def test_what_fails_on_a_virtual_rank_closes_the_cluster(program, said):
    with cluster(2) as two:
        with pytest.raises(RankError, match=said):
            two.run(program)
        with pytest.raises(RankError, match="this cluster is closed: a rank failed"):
            two.run(divides)
    assert ranks.present is None


def test_layers_are_shared_by_virtual_ranks_and_measured_on_them():
    with cluster(3) as three:
        three.run(check.prove, "dense_forward", partitioned.dense_forward)
        samples = three.run(measure.race, "allreduce", {"MPI's": None}, 100, 3)
    assert samples[0] == samples[2] and min(samples[0]["MPI's"]) > 0


def test_cells_under_px_run_on_virtual_ranks(capsys, monkeypatch):
    shell = InteractiveShell.instance()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    with cluster(2) as two:
        two.view.activate()
        shell.run_cell("%%px\nmine = rank + 1")
        capsys.readouterr()
        shell.run_cell("%%px\nif rank: print(mine, size, comm.rank)")
    assert capsys.readouterr().out == "[stdout:1] 2 2 1\n"
