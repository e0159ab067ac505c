"""Programs under mpiexec, with more ranks than cores."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from mpi4py import MPI

from cnnlab import training
from cnnlab.data import load
from cnnlab.distributed import METHODS
from cnnlab.ranks import Alone, job, shared_memory_files
from cnnlab.ranks.cluster import find_mpiexec
from cnnlab.runtime import failures
from cnnlab.training import checkpoint
from tests.ranks.programs import PATIENCE, run, start, until
from tests.ranks.segments import files

pytestmark = pytest.mark.mpi


def train(n, *options):
    common = "--data", "digits", "--images", "110", "--batch", "50", "--epochs", "2"
    return run(n, "-m", "cnnlab", "train", *common, *options)


@pytest.mark.parametrize(
    "n, options",
    [
        (3, ["--ranks", "layers"]),
        (2, ["--ranks", "data", "--kernels", "threads", "--threads", "2"]),
        (5, ["--ranks", "data", "--images", "22", "--batch", "4"]),  # some without an image
    ],
)
def test_ranks_find_the_parameters_of_one(n, options, tmp_path):
    plan = {"--images": 110, "--batch": 50} | dict(zip(options[2::2], options[3::2], strict=True))
    out, _ = train(n, *options, "--save", str(tmp_path / "it.npz"), "--json")
    images, batch = int(plan["--images"]), int(plan["--batch"])
    alone = training.train(load("digits", images), batch=batch, epochs=2).params.flat
    assert np.allclose(checkpoint.load(tmp_path / "it.npz")[0].flat, alone, atol=2e-5)
    assert json.loads(out.splitlines()[-1])["n_ranks"] == n
    assert out.count("epoch 1:") == 1  # only rank 0 speaks


def test_how_gradients_are_added_up_changes_nothing_but_the_time():
    program = """
import numpy as np
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.ranks import job
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.training import Replica, Sgd, train

with job.together() as comm:
    methods = DataParallel(comm), DataParallel(comm)
    methods[1].one_machine = False  # so that gradients are sent
    runs = [  # the reference has no compiled loop: Python leads each step
        train(load("digits", 65), kernels, batch=30, n_threads=1, method=method)
        for kernels in ("vector", "threads", "reference")
        for method in methods
    ]
    for run in runs[1:]:
        assert np.allclose(runs[0].params.flat, run.params.flat, atol=2e-5)
        assert np.isclose(runs[0].history[0]["loss"], run.history[0]["loss"], atol=1e-5)
    digits, params = load("digits", 65), Network().parameters()
    images = digits.train_images, digits.train_labels
    for method in methods:
        replica = Replica(KERNELS["vector"], params.copy(), *images, 50, Sgd(0.5))
        method.steps(replica, np.arange(50))
        step = replica.grads.flat  # all ranks' gradients, times rate / batch
        assert step.any() and np.allclose(params.flat - replica.params.flat, step, atol=1e-6)
    print("good")
"""
    assert run(3, "-c", program)[0].endswith("good\n")


def test_a_wrong_argument_is_one_line_and_status_2():
    out, err = run(2, "-m", "cnnlab", "train", "--ranks", "data", "--data", "cats", status=2)
    assert out == "" and err.count("cnnlab: ") == 1 and "got 'cats'" in err


def test_ranks_that_mpiexec_has_not_brought_together_are_refused(monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "4")
    monkeypatch.setattr(job, "world", lambda: MPI.COMM_SELF)
    message = "mpiexec: expected one MPI world of 4 ranks, got 4 worlds of 1: .* loaded, [A-Z]+"
    with pytest.raises(ValueError, match=message), job.together():
        raise AssertionError("a job of one rank was started")
    monkeypatch.setenv("PMI_SIZE", "1")
    with job.together() as comm:
        assert comm.size == 1


@pytest.mark.skipif("Open MPI" in job.library(), reason="it is the right one here")
def test_open_mpis_mpiexec_is_refused_before_another_mpi_starts_and_aborts():
    it_sets = {"PMIX_RANK": "0", "PMIX_NAMESPACE": "a", "OMPI_COMM_WORLD_SIZE": "2"}
    command = [sys.executable, "-m", "cnnlab", "train", "--ranks", "data"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | it_sets)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "mpiexec: expected one MPI world of 2 ranks, got 2 worlds of 1" in done.stderr


@pytest.mark.parametrize("seconds", [0.1, None])
def test_an_interrupt_at_any_moment_is_one_line_and_status_130(seconds):
    options = "--data", "digits", "--epochs", "100000", "--ranks", "data"
    process = start(2, "-m", "cnnlab", "train", *options)
    until(lambda: sum(map(has_begun, psutil.Process(process.pid).children(True))) == 2)
    if seconds is None:
        assert process.stdout.readline().startswith("epoch 1:")  # in the middle of training
    else:
        time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    try:
        err = process.communicate(timeout=30)[1]
    finally:
        process.kill()
    said = [line for line in err.splitlines() if line not in ("", failures.COMPILING)]
    assert process.returncode == 130 and said == ["cnnlab: stopped"]


def has_begun(process):
    """Whether it is a rank that is past Python's own start, where an interrupt is Python's."""
    with contextlib.suppress(OSError):  # it has just ended
        return "llvmlite" in Path(f"/proc/{process.pid}/maps").read_text()
    return False


def test_an_interrupt_before_a_rank_knows_of_the_others_ends_them_too():
    program = """
import os, signal, time
from cnnlab.runtime import failures
failures.stop_in_one_line()
os.kill(os.getpid(), signal.SIGINT)
from cnnlab.ranks import job
job.end_when_interrupted()
time.sleep(60)
"""
    _, err = run(2, "-c", program, status=130)
    assert err == "cnnlab: stopped\n"


def test_ranks_without_mpi_are_refused(monkeypatch):
    monkeypatch.setattr(job, "world", Alone)
    with pytest.raises(ValueError, match="ranks need mpi4py and an MPI library"):
        with job.together():
            raise AssertionError("a job without MPI was started")


FAULT = """
from cnnlab.ranks import job
with job.together({debug}) as comm:
    if comm.rank == 1:
        raise {error}("a fault on purpose")
    comm.Barrier()
"""


@pytest.mark.parametrize("error, debug", [("KeyError", False), ("RuntimeError", True)])
def test_a_rank_that_raises_ends_the_job_with_its_traceback(error, debug, no_memory_left):
    began = time.monotonic()
    _, err = run(2, "-c", FAULT.format(error=error, debug=debug), status=1)
    assert "rank 1 of 2 failed" in err and "a fault on purpose" in err and "Traceback" in err
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("error, status", [("RuntimeError", 1), ("ValueError", 2)])
def test_what_a_user_can_mend_ends_the_job_in_one_line(error, status, no_memory_left):
    _, err = run(2, "-c", FAULT.format(error=error, debug=False), status=status)
    assert "cnnlab: rank 1: a fault on purpose" in err and "Traceback" not in err


def test_without_a_way_to_train_together_ranks_are_refused_once():
    out, err = run(2, "-m", "cnnlab", "train", "--data", "digits", status=2)
    assert out == "" and err.count("cnnlab: ") == 1
    assert f"--ranks: expected one of {', '.join(METHODS)} under mpiexec" in err
    out, err = run(2, "-m", "cnnlab", "train", "--epochs", "none", status=2)
    assert out == "" and err.count("\n") == 1


@pytest.mark.parametrize(
    "what, one, other",
    [("plan", ["--seed", "1"], ["--seed", "2"]), ("history", ["--resume", "{file}"], [])],
)
def test_ranks_that_disagree_end_together_with_one_line(what, one, other, tmp_path):
    file, common = tmp_path / "one.npz", ["--data", "digits", "--images", "100", "--epochs", "2"]
    digits = load("digits", 100)
    training.train(digits, epochs=1, save=file)
    program = [sys.executable, "-m", "cnnlab", "train", "--ranks", "data", *common]
    one = [word.format(file=file) for word in one]
    command = [find_mpiexec(), "-n", "1", *program, *one, ":", "-n", "1", *program, *other]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and done.stdout == "", done.stderr
    assert f"ranks: expected the same {what} on all, rank 0 has" in done.stderr
    assert done.stderr.count("cnnlab: ") == 1


def test_a_rank_on_its_own_leaves_no_memory_even_if_it_is_killed():
    program = """
import os, signal
from cnnlab.ranks import shared_memory_files, world
world().Dup().Barrier()
print(*shared_memory_files.mapped_by([os.getpid()]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert done.returncode == -signal.SIGKILL
    assert not set(done.stdout.split()) & files()


# Methods whose ranks wait in a way of their own: in shared memory, in a collective, for a message
# of one rank, of any rank, or of a partner that changes; and the options that go with them.
WAITING = {
    "data": [],
    "layers": [],
    "pipeline": ["--schedule", "zero-bubble"],
    "server": [],
    "gossip": [],
}


@pytest.mark.parametrize("name", WAITING)
def test_a_rank_that_is_killed_ends_the_job(name):
    options = "--data", "digits", "--images", "60", "--epochs", "100000", "--ranks", name
    process = start(2, "-m", "cnnlab", "train", *options, *WAITING[name])
    ranks = []

    def result():
        children = psutil.Process(process.pid).children(recursive=True)
        ranks[:] = [p for p in children if "cnnlab" in p.cmdline() and "-n" not in p.cmdline()]
        return len(ranks) == 2

    until(result)
    assert process.stdout.readline().startswith("epoch 1:")  # in the middle of training
    # Nobody is left who could remove these.
    files = shared_memory_files.mapped_by(rank.pid for rank in ranks)
    ranks[1].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    said = "".join(process.communicate(timeout=30))
    shared_memory_files.remove(files)
    assert process.returncode != 0 and time.monotonic() - killed < 10
    # mpiexec says so, or before it a rank whose message came from there: no such process.
    assert re.search(r"signal 9|KILLED|process_vm_readv failed \(errno 3\)", said), said
    assert not psutil.wait_procs(ranks, timeout=10)[1]
