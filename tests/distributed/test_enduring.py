"""A server whose workers are killed: no image is lost, none counts twice, and the job goes on."""

import json
import math
import os
import re
import signal

import numpy as np
import psutil
import pytest

from cnnlab.distributed.enduring import Enduring, Returned
from cnnlab.distributed.pool import END
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.ranks.virtual import World
from cnnlab.training import Replica, Sgd, checkpoint
from tests.distributed.test_pool import Clock
from tests.distributed.uncut import DIGITS
from tests.ranks.programs import PATIENCE, run, start

PROGRAM = """
from cnnlab.ranks import guard, job
from tests.distributed.test_enduring import go_on

guard.begin()
with job.together() as comm:
    go_on(comm)
"""
# By rank, in epoch 1, 2 and 3: before a gradient is sent, between it and the reply, at the end.
MOMENTS = {1: "gradients", 2: "Recv", 3: "allreduce"}


def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def go_on(comm):
    """On a rank: epochs, in which ranks 1, 2 and 3 are killed, each at another call."""
    images, labels = DIGITS.train_images, DIGITS.train_labels
    of = Replica(KERNELS["vector"], Network().parameters(0), images, labels, 4, Sgd(0.3))
    method, losses = Enduring(comm, "any"), []
    for epoch in range(12):
        if at := MOMENTS.get(comm.rank) if epoch == comm.rank else None:
            setattr(of if at == "gradients" else method.comm, at, killed)
        losses.append(method.epoch(of, np.arange(30), lambda loss, n: None) / 30)
        method.gather(of)
        if comm.rank == 0:
            assert method.ledger.faults(math.inf) == []
    ends = {params.tobytes() for params in method.comm.allgather(of.params.flat)}
    if comm.rank == 0:
        print(json.dumps([losses, sorted(method.comm.lost), len(ends)]))
    method.leave(0)


@pytest.mark.mpi
def test_workers_may_be_killed_at_any_moment(no_memory_left):
    out, err = run(5, "-c", PROGRAM)
    losses, lost, ends = json.loads(out)
    left = re.findall(r"cnnlab: rank (\d) was lost: going on with (\d) worker", err)
    assert left == [("1", "3"), ("2", "2"), ("3", "1")] and lost == [1, 2, 3] and ends == 1
    assert max(losses[1:]) < losses[0] and losses[-1] > 1  # of all images, and of each once


@pytest.mark.mpi
def test_a_training_whose_worker_is_killed_comes_to_its_end(no_memory_left, tmp_path):
    options = "--data", "digits", "--images", "330", "--epochs", "60", "--save", tmp_path / "it.npz"
    way = "--ranks", "server", "--staleness", "2", "--lost", "go-on", "--json"
    process = start(3, "-m", "cnnlab", "train", *map(str, options), *way)
    try:
        assert process.stdout.readline().startswith("epoch 1:")
        ranks = ranks_of(process)
        ranks["2"].kill()
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0 and err == "cnnlab: rank 2 was lost: going on with 1 worker\n"
    told = json.loads(out.splitlines()[-1])
    assert len(told["history"]) == len(checkpoint.load(tmp_path / "it.npz").history) == 60
    assert told["lost"] == "go-on" and not psutil.wait_procs(list(ranks.values()), timeout=10)[1]


def ranks_of(process):
    """The ranks of a job, which their guards have started, by their number."""
    found = psutil.Process(process.pid).children(recursive=True)
    found = [one for one in found if "cnnlab" in one.cmdline()]
    guards = {one.pid for one in found}
    return {one.environ()["PMI_RANK"]: one for one in found if one.ppid() in guards}


def pool(n_images, n_workers):
    return Returned(n_images, 4, n_workers, Clock())


def test_what_a_lost_worker_had_is_drawn_again():
    of = pool(4, 2)
    pieces = [of.draw(0), of.draw(1)]
    assert pieces == [(0, 2), (2, 4)] and not of.left and not of.empty
    of.back(0, 2)
    of.lose(1)
    assert of.left and not of.empty and of.draw(0) == (2, 4)
    of.back(0, 2)
    assert of.empty and of.draw(0) == END


def test_who_draws_in_vain_waits_with_a_piece_of_no_images():
    of = pool(1, 3)
    assert of.draw(0) == (0, 1) and of.draw(1) == of.draw(2) == (1, 1)
    of.back(1, 0)
    of.back(2, 0)
    assert not of.empty
    of.lose(0)
    assert of.draw(1) == (0, 1)


def test_shares_are_those_of_workers_who_are_here():
    of = pool(100, 3)
    for worker in range(3):
        of.draw(worker)
    of.lose(2)
    of.clock.now = 1.0
    of.back(0, 1)
    of.back(1, 1)
    assert of.share(0) == of.share(1) == 0.5


def test_shares_of_a_batch_cannot_be_given_back():
    with pytest.raises(ValueError, match=r"^--lost: expected a staleness of 1 or more, or any"):
        World(2).run(Enduring, 0)
