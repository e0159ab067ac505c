"""Who ends a job when a rank is killed that has a guard, and how those who are left go on."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from cnnlab.ranks import job
from cnnlab.ranks.job import Lost, Survivors
from cnnlab.ranks.virtual import World
from tests.distributed.test_server import ranks_of
from tests.ranks.programs import PATIENCE, run, start

TRAIN = "-m", "cnnlab", "train", "--data", "digits", "--images", "330", "--epochs", "100000"
WAY = "--ranks", "server", "--staleness", "any", "--lost", "go-on"


@pytest.mark.mpi
def test_a_job_ends_with_its_server(no_memory_left):
    process = start(3, *TRAIN, *WAY)
    try:
        assert process.stdout.readline().startswith("epoch 1:")
        ranks = ranks_of(process)
        guards = [rank.parent() for rank in ranks.values()]
        ranks["0"].kill()
        began = time.monotonic()
        err = process.communicate(timeout=PATIENCE)[1]
    finally:
        process.kill()
    assert process.returncode == 1 and time.monotonic() - began < 10
    assert err == "cnnlab: rank 0 was killed: the job ends, as it has the parameters\n"
    assert not psutil.wait_procs([*ranks.values(), *guards], timeout=10)[1]


def test_there_is_no_guard_without_an_mpiexec_that_it_can_tell(monkeypatch):
    monkeypatch.delenv("PMI_FD", raising=False)
    with pytest.raises(ValueError, match=r"^--lost: expected MPICH's mpiexec with go-on, got"):
        job.begin()


ALONE = """
import os, signal, sys, time
from cnnlab.ranks import job
job.begin()
if sys.argv[1] != "too early":
    job.can_be_missed()
print(os.getpid(), flush=True)
if sys.argv[1] == "wait":
    time.sleep(60)
os.kill(os.getpid(), signal.SIGKILL)
"""


def guarded(what, rank=1):
    """A guard and its rank, the latter's process, and our end of what it takes for mpiexec."""
    ours, own = socket.socketpair()
    ours.settimeout(PATIENCE)
    environment = os.environ | {"PMI_FD": str(own.fileno()), "PMI_RANK": str(rank)}
    command, message = [sys.executable, "-c", ALONE, what], {"text": True, "env": environment}
    with own:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, pass_fds=[own.fileno()], **streams, **message)
    return process, int(process.stdout.readline()), ours


def test_a_guard_says_that_a_killed_rank_is_done():
    process, _, ours = guarded("killed")
    assert ours.recv(100) == b"cmd=finalize\n"
    ours.send(b"cmd=finalize_ack\n")
    assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    "what, rank, why",
    [("killed", 0, "it has the parameters"), ("too early", 1, "training had not begun")],
)
def test_a_guard_ends_the_job_where_the_others_could_not_go_on(what, rank, why):
    process, _, ours = guarded(what, rank)
    assert ours.recv(100) == b"cmd=abort exitcode=1\n"
    process.kill()
    said = f"cnnlab: rank {rank} was killed: the job ends, as {why}\n"
    assert process.communicate(timeout=PATIENCE)[1] == said


def test_a_rank_ends_with_its_guard():
    process, rank, _ = guarded("wait")
    rank = psutil.Process(rank)
    process.kill()
    assert not psutil.wait_procs([rank], timeout=PATIENCE)[1]


# --- collectives by way of rank 0, of which a rank is missing

PROGRAM = """
import os, signal
from cnnlab.ranks import job
from tests.ranks.test_guard import collectives

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
