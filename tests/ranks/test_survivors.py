"""Collectives by way of rank 0, of which a rank is missing; and what they are without guards."""

import json
import os
import signal

import numpy as np
import pytest

from cnnlab.ranks.job import Lost, Survivors
from cnnlab.ranks.virtual import World
from tests.ranks.programs import run

PROGRAM = """
import os, signal
from cnnlab.ranks import job
from tests.ranks.test_survivors import collectives

job.begin()
with job.together() as comm:
    collectives(comm)
"""


def collectives(comm):
    """On a rank: all collectives before rank 2 is killed, whose last message arrives, and after."""
    from mpi4py import MPI

    mine, result = Survivors(comm), []

    def all_of_them():
        array = np.full(40_000, float(comm.rank))
        mine.Bcast(array)
        return [mine.allreduce(10**comm.rank), mine.allgather(comm.rank), float(array.max())]

    result.append(all_of_them())
    if comm.rank == 2:
        mine.Send(np.array([7.0]), 0, 5)
        os.kill(os.getpid(), signal.SIGKILL)
    array = np.zeros(1)
    if comm.rank == 0:
        mine.Recv(array, MPI.ANY_SOURCE, 5)
        with pytest.raises(Lost, match="rank 2 was lost"):
            mine.Recv(array, MPI.ANY_SOURCE, 5)
        mine.Send(array, 2)  # to nobody
    result.append(all_of_them())
    mine.Barrier()
    said = mine.allgather(result)
    if comm.rank == 0:
        print(json.dumps([*said, array[0], sorted(mine.lost)]), flush=True)
    os._exit(0)


@pytest.mark.mpi
def test_collectives_go_on_among_those_who_are_left(no_memory_left):
    out, err = run(4, "-c", PROGRAM)
    whole = [1111, [0, 1, 2, 3], 0.0], [1011, [0, 1, 0, 3], 0.0]  # of a lost rank, what rank 0 has
    assert json.loads(out) == [*[list(whole)] * 4, 7.0, [2]]
    assert err == "cnnlab: rank 2 was lost: going on with 2 workers\n"


def test_ranks_that_mpiexec_ends_are_refused(monkeypatch):
    monkeypatch.delenv("CNNLAB_GUARD", raising=False)
    with pytest.raises(ValueError, match="comm: expected ranks under guard, got ranks that mpi"):
        World(2).run(Survivors)


def test_ranks_of_several_machines_are_refused(monkeypatch):
    class Far:
        def allgather(self, item):
            return [item, ("far away", 1)]

    monkeypatch.setenv("CNNLAB_GUARD", "1")
    with pytest.raises(ValueError, match=r"^--lost: expected ranks of one machine .* got 2"):
        Survivors(Far())
