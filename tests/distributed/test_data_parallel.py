"""Data parallelism where a message takes its time."""

import weakref

import numpy as np
import pytest
from mpi4py import MPI

from cnnlab.data import load
from cnnlab.distributed import data_parallel, shared_window
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import KERNELS
from cnnlab.kernels.compiled import allreduce_memory, allreduce_mpi
from cnnlab.kernels.composition import chosen_gradients
from cnnlab.network import Network


class Late:
    """Two ranks with the same images, whose messages are read when they are waited for.

    MPI may do so too. Like mpi4py's, a request does not keep the arrays.
    """

    rank, size = 0, 2

    def Iallreduce(self, mine, total):
        return Request(*map(place, (mine, total)))


class Request:
    def __init__(self, mine, total):
        self.mine, self.total = mine, total

    def Wait(self):
        self.total()[:] = self.mine() * 2


def place(array):
    """A function that finds the array again, if its memory is still there."""
    owner = array if array.base is None else array.base
    first = (array.ctypes.data - owner.ctypes.data) // array.itemsize
    memory, n = weakref.ref(owner), array.size

    def found():
        assert memory() is not None, "freed while the message was on its way"
        return memory().reshape(-1)[first : first + n]

    return found


def test_what_is_sent_stays_until_it_has_arrived():
    digits, net, strategy = load("digits", 330), Network(), KERNELS["reference"]
    params, images = net.parameters(0, strategy.dtype), digits.train_images.astype(strategy.dtype)
    everything = strategy, params, images, digits.train_labels, np.arange(7)
    whole, grads = net.zeros(strategy.dtype), net.zeros(strategy.dtype)
    loss = DataParallel(Late(), overlap=True).gradients(*everything, grads)
    assert np.isclose(loss, 2 * chosen_gradients(*everything, whole))
    np.testing.assert_allclose(grads.flat, 2 * whole.flat, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("overlap, parts", [(False, 1), (True, 2)])
def test_an_overlapping_share_is_sent_in_two_parts(overlap, parts):
    ranks = DataParallel(MPI.COMM_SELF, overlap).messages
    assert len(ranks(5).mine) == parts and ranks(5) is ranks(5)


def of_two(**options):
    ranks = DataParallel(MPI.COMM_SELF, **options)
    ranks.size = 2
    return ranks


def test_a_single_rank_has_nobody_to_add_up_with():
    strategy = KERNELS["threads"]
    assert DataParallel(MPI.COMM_SELF).sgd_steps(strategy) is strategy.sgd_steps


def test_where_mpi_is_not_found_by_name_messages_go_through_python(monkeypatch):
    assert of_two(window=False).sgd_steps(KERNELS["vector"])
    monkeypatch.setattr(allreduce_mpi, "library", object)
    assert of_two(window=False).sgd_steps(KERNELS["vector"]) is None
    assert of_two().sgd_steps(KERNELS["vector"])  # needs no message


@pytest.mark.parametrize(
    "name, options, one_machine, expected",
    [
        ("vector", {}, True, allreduce_memory.Team),
        ("vector", {}, False, allreduce_mpi.Ranks),
        ("vector", {"window": False}, True, allreduce_mpi.Ranks),
        ("vector", {"overlap": True}, True, allreduce_mpi.Ranks),
        ("threads", {}, True, allreduce_mpi.Ranks),
    ],
)
def test_ranks_of_one_machine_share_memory_and_others_send_messages(
    name, options, one_machine, expected, monkeypatch
):
    asked, strategy = [], KERNELS[name]
    monkeypatch.setattr(data_parallel, "one_machine", lambda comm: one_machine)
    monkeypatch.setattr(strategy.module, "sgd_steps", lambda *a: asked.append(a[-1]) or 1.0)
    monkeypatch.setattr(strategy.module.sgd_steps, "__module__", strategy.module.__name__)
    params, grads = Network().parameters(), Network().zeros()
    steps = of_two(**options).sgd_steps(strategy)
    assert steps(params, grads, None, None, None, 1, 0.1) == 1
    assert [type(ranks) for ranks in asked] == [expected]


def test_a_communicator_keeps_its_teams():
    ours = MPI.COMM_SELF.Dup()
    assert shared_window.one_machine(ours)
    team, other = shared_window.team(ours, 5), shared_window.team(ours, 100)
    assert (
        shared_window.team(ours, 5) is team
        and team.parts.shape[1] >= 5
        and team.total.shape == (5,)
    )
    assert (team.member, team.size, other.parts.shape[1] >= 100) == (0, 1, True)
    for array in (*team.parts, team.counts):
        assert array.ctypes.data % 64 == 0 and not array.any()
    mine = shared_window.team(MPI.COMM_SELF, 5)
    mine.parts[:] = 1
    assert not team.parts.any() and not other.parts.any()
