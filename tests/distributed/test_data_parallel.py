"""Data parallelism where a message takes its time. With several ranks, see tests/ranks/test_job."""

import functools

import numpy as np
import pytest
from mpi4py import MPI

from cnnlab.data import load
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import allreduce
from cnnlab.ranks.virtual import World
from cnnlab.training import method
from tests.distributed.uncut import check_virtual
from tests.replicas import replica_of

DIGITS = load("digits", 330, 100)


replica = functools.partial(replica_of, DIGITS)


def test_any_number_of_ranks_takes_the_steps_of_one():
    for n in (1, 2, 13):  # at last more than images in a batch
        check_virtual(n, DataParallel, "report")


def of_two(one_machine=True):
    method = DataParallel(MPI.COMM_SELF)
    method.size, method.one_machine = 2, one_machine
    return method


def test_where_mpi_is_not_found_by_name_messages_go_through_python(monkeypatch):
    assert of_two(one_machine=False).loop(replica("vector"))
    monkeypatch.setattr(allreduce, "library", object)
    assert of_two(one_machine=False).loop(replica("vector")) is None
    assert of_two().loop(replica("vector"))  # needs no message


def test_a_strategy_without_compiled_steps_is_led_by_python():
    for kernels in ("reference", "loops", "device"):  # the device's take no part of a batch
        assert of_two().loop(replica(kernels)) is None


@pytest.mark.parametrize(
    "kernels, one_machine, expected",
    [("vector", True, "team"), ("vector", False, "messages"), ("threads", True, "messages")],
)
def test_ranks_of_one_machine_share_memory_and_others_send_messages(
    kernels, one_machine, expected, monkeypatch
):
    asked, trained = [], replica(kernels)
    monkeypatch.setattr(
        trained, "loop", lambda workers=None, grads=None: asked.append(workers) or (lambda order: 0)
    )
    of_two(one_machine).loop(trained)
    workers = asked[-1]
    assert (workers.rank, workers.size) == (0, 2)
    assert [name for name in ("team", "messages") if getattr(workers, name)] == [expected]


def test_the_sum_of_shared_gradients_is_left_in_those_of_the_replica():
    alone, shared = replica("vector"), replica("vector")
    order = np.arange(120)
    loss = DataParallel(MPI.COMM_SELF).in_memory(shared)(order)
    assert loss == alone.loop()(order)
    for name in ("params", "grads"):
        flat = getattr(shared, name).flat
        assert flat.any() and (flat == getattr(alone, name).flat).all()


def test_ranks_that_python_leads_add_up_their_loss_after_many_batches(monkeypatch):
    monkeypatch.setattr(method, "BY_RANKS", 100)

    def program(comm):
        said = []
        group = DataParallel(comm)
        loss = group.epoch(replica("vector", 20), np.arange(330), lambda *news: said.append(news))
        return loss, said

    (loss, said), (own, _) = World(2).run(program)
    assert [n for _, n in said] == [100, 100, 100, 30]
    assert loss == own == pytest.approx(sum(part for part, _ in said)) and loss > 0
