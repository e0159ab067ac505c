"""Who ends a job when a rank is killed that has a guard, and what is left of it."""

import os
import socket
import subprocess
import sys
import time

import psutil
import pytest

from cnnlab.ranks import job
from tests.distributed.test_server import ranks_of
from tests.ranks.programs import PATIENCE, start

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
