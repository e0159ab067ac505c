import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from cnnlab.ranks import cluster as module
from cnnlab.ranks import cluster as watchdog
from cnnlab.ranks.cluster import Cluster, RankError, cluster

pytestmark = pytest.mark.mpi


@pytest.fixture(autouse=True)
def names(monkeypatch, no_memory_left):
    """The names of the clusters that a test starts; none of their processes may outlive it."""
    result, watch = [], watchdog.watch

    def noting(name, folder):
        result.append(name)
        return watch(name, folder)

    monkeypatch.setattr(watchdog, "watch", noting)
    yield result
    for name in result:
        assert watchdog.members(name) == []


def test_a_member_that_ends_while_it_is_looked_at_is_none(monkeypatch):
    def ended(process):
        raise psutil.NoSuchProcess(process.pid)

    name, command = "a cluster of one", [sys.executable, "-c", "input()"]
    environment = os.environ | {watchdog.MARK: name}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
        while not watchdog.members(name):  # it has not begun
            time.sleep(0.01)
        monkeypatch.setattr(psutil.Process, "status", ended)
        assert watchdog.members(name) == []
        process.communicate(b"\n")


def number():
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size


def number_of_threads():
    import numba

    return numba.config.NUMBA_NUM_THREADS


def rank_one_fails():
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 1:
        raise ValueError("on purpose")
    return MPI.COMM_WORLD.allreduce(1)


def all_fail():
    raise ValueError("everywhere")


def rank_one_dies():
    import os
    import signal

    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    MPI.COMM_WORLD.Barrier()


def rank_one_dies_and_mpiexec_is_quicker_to_tell():
    import os
    import signal
    import time

    from mpi4py import MPI

    other = MPI.COMM_WORLD.allgather(os.getpid())[0]
    if MPI.COMM_WORLD.rank == 1:
        os.kill(other, signal.SIGINT)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(20)


def wait_for_nothing():
    from mpi4py import MPI

    MPI.COMM_WORLD.Recv(bytearray(1), source=MPI.COMM_WORLD.rank)


def test_ranks_are_one_world_in_their_order_and_an_exception_leaves_nothing(names):
    with pytest.raises(ZeroDivisionError), cluster(3, n_threads=3) as ranks:
        assert isinstance(ranks, Cluster) and ranks.n_ranks == 3
        assert ranks.run(number_of_threads) == [3, 3, 3]  # as asked for
        assert ranks.run(number) == [(0, 3), (1, 3), (2, 3)]
        ranks.view.execute("here = rank * 10", block=True)
        assert ranks.view["here"] == [0, 10, 20]
        with pytest.raises(RankError, match="rank 0 raised ValueError: everywhere"):
            ranks.run(all_fail)
        assert ranks.run(number) == [(0, 3), (1, 3), (2, 3)]  # still usable
        assert no_other_machine_can_reach(names[0])
        raise ZeroDivisionError


def no_other_machine_can_reach(name):
    # Open MPI's starter listens everywhere, and refuses to run if it is told the loopback.
    members = [p for p in watchdog.members(name) if p.name() != "prterun"]
    ends = {end for process in members for end in process.net_connections("inet")}
    assert len(members) > 2 and any(end.status == psutil.CONN_LISTEN for end in ends)
    return {end.laddr.ip for end in ends} == {"127.0.0.1"}


@pytest.mark.parametrize(
    "function, word",
    [
        (rank_one_fails, "rank 1 raised ValueError: on purpose"),
        (rank_one_dies, "died"),
        (rank_one_dies_and_mpiexec_is_quicker_to_tell, "died"),
        (wait_for_nothing, "not finished in time: ranks 0, 1"),
    ],
)
def test_no_rank_waits_for_ever(function, word):
    with cluster(2) as ranks:
        began = time.monotonic()
        with pytest.raises(RankError, match=word) as caught:
            ranks.run(function, timeout=3 if function is wait_for_nothing else None)
        assert time.monotonic() - began < 10 and "\x1b" not in str(caught.value)
        with pytest.raises(RankError, match="this cluster is closed"):
            ranks.run(number)


@pytest.mark.parametrize("call", [lambda r: r.run(number), lambda r: r.view.execute("rank")])
def test_a_rank_that_died_between_two_calls_is_said(call):
    with cluster(2) as ranks:
        os.kill(ranks.run(os.getpid)[1], signal.SIGKILL)
        time.sleep(1)
        with pytest.raises(RankError, match="a rank died without a traceback"):
            call(ranks)
        assert watchdog.members(ranks._name) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_ranks_end_when_the_notebook_is_killed_or_interrupted(how, tmp_path):
    program = """
import signal
from cnnlab.ranks.cluster import cluster
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
def sleep():
    import time
    time.sleep(600)
with cluster(2) as ranks:
    print(ranks._name, flush=True)
    ranks.run(sleep, timeout=600)
"""
    command = [sys.executable, "-c", program]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, **pipes) as notebook:
        name = notebook.stdout.readline().strip()
        assert len(watchdog.members(name)) > 2
        time.sleep(0.5)  # for the ranks to be asleep
        os.kill(notebook.pid, how)
        try:
            said = notebook.communicate(timeout=40)[1]
        finally:
            notebook.kill()
    assert notebook.returncode != 0
    assert how == signal.SIGKILL or "KeyboardInterrupt" in said
    end = time.monotonic() + 20
    while (
        watchdog.members(name) or any(tmp_path.glob("cnnlab-ranks-*"))
    ) and time.monotonic() < end:
        time.sleep(0.2)
    assert watchdog.members(name) == [] and not any(tmp_path.glob("cnnlab-ranks-*"))


def test_an_mpiexec_of_another_mpi_is_found_out(monkeypatch, tmp_path):
    """It starts the programs, but each is a world of its own."""
    wrong = tmp_path / "mpiexec"
    wrong.write_text('#!/bin/sh\nshift 2\n"$@" & \n"$@" &\nwait\n')
    wrong.chmod(0o755)
    monkeypatch.setattr(module, "find_mpiexec", lambda: str(wrong))
    with pytest.raises(
        RuntimeError, match="mpiexec: expected one MPI world of 2 ranks, got 2 worlds of 1"
    ):
        with cluster(2):
            pass


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_impossible_numbers_of_ranks_are_refused(n):
    with pytest.raises(ValueError, match="n_ranks: expected a whole number of at least 1"):
        with cluster(n):
            pass
