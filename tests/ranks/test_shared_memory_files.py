"""Files of jobs that were killed, and of jobs that run."""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from types import SimpleNamespace

import pytest

from cnnlab.ranks import job, shared_memory_files
from cnnlab.ranks.cluster import cluster, find_mpiexec
from tests.ranks.programs import until
from tests.ranks.segments import files, noting_segments

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="only Linux has /dev/shm")

MAP = """
import mmap, sys
with open(sys.argv[1], "wb+") as file:
    file.truncate(4096)
    shared = mmap.mmap(file.fileno(), 4096)
print("mapped", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def mapping(file):
    """A program that has made and mapped a file, and leaves it when it ends."""
    command, pipes = [sys.executable, "-c", MAP, file], {"stdin": -1, "stdout": -1, "text": True}
    with subprocess.Popen(command, **pipes) as program:
        assert program.stdout.readline() == "mapped\n"
        yield


@pytest.fixture
def name():
    """Makes names of such files, which are removed after the test."""
    made = []

    def make():
        made.append(f"{shared_memory_files.NAMES[0]}{uuid.uuid4().hex}")
        return made[-1]

    yield make
    shared_memory_files.remove(made)


def age(file, seconds=3600):
    os.utime(file, (time.time() - seconds,) * 2)


def test_ranks_that_have_no_room_are_refused_before_mpi_starts(monkeypatch):
    room = SimpleNamespace(free=3_000_000, total=5_000_000)
    monkeypatch.setattr(shared_memory_files.shutil, "disk_usage", lambda folder: room)
    shared_memory_files.make_room(2)
    shared_memory_files.make_room(4, first=False)  # the first has taken some
    text = "/dev/shm: expected 4.4 MB for 4 ranks, got 3.0 MB; in a container, add --shm-size=1g"
    with pytest.raises(RuntimeError, match=text):
        shared_memory_files.make_room(4)
    with pytest.raises(RuntimeError, match="for 5 ranks, got"), cluster(5):
        pass


def test_only_old_files_of_ones_own_that_nobody_maps_are_abandoned(name, monkeypatch):
    apart = f"{shared_memory_files.NAMES[0]}{uuid.uuid4().hex}"  # from other programs' files
    monkeypatch.setattr(shared_memory_files, "NAMES", (apart,))
    used, left, young, anothers = name(), name(), name(), name()
    for file in left, young, anothers:
        with mapping(file):
            pass
    age(left)
    age(anothers)
    age(young, -600)  # however slow this machine is
    if os.getuid() == 0:
        os.chown(anothers, 12345, -1)
    with mapping(used):
        age(used)
        shared_memory_files.remove_abandoned()
        assert not os.path.exists(left) and {used, young} <= files()
        assert os.getuid() != 0 or anothers in files()
        monkeypatch.setattr(shared_memory_files.os, "listdir", None)  # nothing old: no search
        age(used, -600)
        shared_memory_files.remove_abandoned()


@pytest.mark.mpi
def test_what_a_killed_job_leaves_is_removed_by_the_next():
    program = """
from cnnlab.ranks import job, shared_memory_files
with job.together() as comm:
    comm.Barrier()
    print(*shared_memory_files.mapped_by([{}]), flush=True)
    {}
"""
    with noting_segments() as ours:
        command = [find_mpiexec(), "-n", "2", sys.executable, "-c"]
        sleep = program.format("__import__('os').getpid()", "__import__('time').sleep(600)")
        with subprocess.Popen([*command, sleep], stdout=-1, text=True) as started:
            left = set(started.stdout.readline().split())
            assert left and until(lambda: left <= ours)
            started.kill()
        assert left <= files()
        for file in left:
            age(file)

        def removed():
            with job.together():
                return not left & files()

        assert until(removed)  # the ranks may still be ending
