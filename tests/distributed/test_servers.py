"""Several servers: the bits of one, promises kept on each, and fewer bytes at the busiest."""

import math

import numpy as np
import pytest

from cnnlab.distributed.groups import Groups
from cnnlab.distributed.server import Server
from cnnlab.distributed.servers import Servers
from cnnlab.distributed.trial import sent
from cnnlab.ranks.virtual import World, examine
from cnnlab.training import Sgd, train
from tests.distributed.test_server import charged
from tests.distributed.uncut import DIGITS, check_virtual, replica, steps
from tests.ranks.programs import run


def epoch(comm, make):
    """On a rank: faults and lead, the parameters, and what updates add up to of all gradients."""
    of, method = charged(comm, 3), make(comm)
    before, everything = of.params.flat.copy(), np.zeros_like(of.sent)
    method.epoch(of, np.arange(30), lambda loss, n: None)
    method.gather(of)
    comm.Allreduce(of.sent, everything)
    ledger = method.ledger
    told = (ledger.faults(method.staleness), ledger.lead) if ledger else None
    return told, of.params.flat, before - 0.1 / 3 * everything


def keeps_promises(make, n, n_ledgers, staleness):
    """Check an epoch of n uneven ranks, on each that has a ledger."""
    world = World(n, "10us,1GB/s", speed={n - 1: 5.0}, jitter=0.3, seed=1)
    found = world.run(epoch, lambda comm: make(comm, staleness, 2))
    told = [of for of, _, _ in found if of]
    assert [faults for faults, _ in told] == [[]] * n_ledgers
    assert all((lead > 0) == (staleness != 0) for _, lead in told)
    for _, params, expected in found:
        np.testing.assert_allclose(params, expected, atol=1e-12)
        assert np.array_equal(params, found[0][1])


@pytest.mark.parametrize("n, servers", [(2, 1), (5, 2), (7, 3), (14, 4)])
def test_without_staleness_they_take_the_steps_of_one_rank(n, servers):
    for network in ("report", "lenet5"):  # also more workers than images in a batch
        check_virtual(n, lambda comm: Servers(comm, 0, servers), network)


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_without_staleness_bits_are_those_of_one_server(servers):
    def found(n, make):
        return World(n, jitter=0.5, seed=1).run(lambda comm: steps(make(comm), "report"))

    alone, several = found(4, Server), found(3 + servers, lambda comm: Servers(comm, 0, servers))
    for loss, params, state in several:
        assert loss == alone[0][0] and np.array_equal(params, alone[0][1])
        assert all(np.array_equal(state[name], of) for name, of in alone[0][2].items())


@pytest.mark.parametrize("staleness", [0, 1, 3, "any"])
def test_each_server_applies_every_gradient_once_and_keeps_the_bound(staleness):
    keeps_promises(Servers, 6, 2, staleness)


def test_the_end_comes_with_fewer_images_than_workers():
    def program(comm):
        of, method = charged(comm, 4), Servers(comm, "any", 2)
        for chosen in (np.arange(2), np.arange(0), np.arange(5)):
            method.step(of, chosen)
            assert not method.ledger or method.ledger.faults(math.inf) == []
        return True

    assert all(World(7, speed={3: 9.0}).run(program))


def test_the_busiest_server_takes_fewer_bytes_the_more_there_are():
    def busiest(servers):
        crossed = sent(8 + servers, "server", "report", 3, servers=servers)
        return (crossed.sum(0) + crossed.sum(1))[:servers].max()

    one, four = busiest(1), busiest(4)
    assert one / 4 < four < one / 3.8


@pytest.mark.parametrize("staleness", [0, 2])
def test_a_resumed_training_is_an_unbroken_one(staleness, tmp_path):
    optimizer = "sgd" if staleness else "momentum"

    def training(epochs, **files):
        def program(comm):
            how = {"epochs": epochs, "batch": 3, "optimizer": optimizer, **files}
            return train(DIGITS, method=Servers(comm, staleness, 2), **how).params.flat

        return World(4, speed={3: 1.3}).run(program)[0]

    training(1, save=tmp_path / "one")
    assert np.array_equal(training(2, resume=tmp_path / "one"), training(2))


def test_messages_have_no_fault_that_mpi_would_hide():
    assert examine(lambda comm: steps(Servers(comm, 0, 2), "report"), 4) == []


@pytest.mark.parametrize("n, servers", [(2, 2), (4, 5)])
def test_without_a_worker_they_are_refused(n, servers):
    with pytest.raises(ValueError, match=r"^--servers: expected fewer servers than the . ranks"):
        World(n).run(Servers, 0, servers)


PROGRAM = """
from cnnlab.distributed.groups import Groups
from cnnlab.distributed.servers import Servers
from cnnlab.ranks import job
from tests.distributed.test_servers import on_real_ranks
from tests.distributed.uncut import check, steps

with job.together() as comm:
    check([steps(kind(comm, 0, 2), "lenet5") for kind in (Servers, Groups)], "lenet5")
    on_real_ranks(comm)
    print("good")
"""


def on_real_ranks(comm):
    """Nothing is lost, and all end with the same parameters, where nobody waits."""
    for kind in (Servers, Groups):
        of, method = replica("report"), kind(comm, "any", 2)
        of.optimizer = Sgd(0.1)
        method.epoch(of, np.arange(30), lambda loss, n: None)
        method.gather(of)
        assert len({params.tobytes() for params in comm.allgather(of.params.flat)}) == 1
        assert not method.ledger or method.ledger.faults(math.inf) == []


@pytest.mark.mpi
def test_several_servers_and_two_levels_on_real_ranks_too():
    assert run(5, "-c", PROGRAM)[0].endswith("good\n")
