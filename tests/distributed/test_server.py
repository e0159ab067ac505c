"""A parameter server: nothing lost, nothing applied twice, and no worker too far ahead."""

import itertools
import math

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.pool import Pool
from cnnlab.distributed.server import Server
from cnnlab.distributed.trial import Counting
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.ranks.virtual import World, examine
from cnnlab.training import Replica, Sgd, train
from tests.distributed.uncut import DIGITS, check_virtual, steps
from tests.ranks.programs import run


class AgeCapped(Server):
    """Wrong: nobody waits, and gradients that are too old are thrown away."""

    def may_go_on(self, worker):
        return True

    def apply(self, replica, worker, *what):
        if self.ledger.clocks.sum() - self.ledger.seen[worker] < self.n_workers:
            super().apply(replica, worker, *what)


class Leading(Server):
    """Wrong: nobody waits."""

    def may_go_on(self, worker):
        return True


class Twice(Server):
    """Wrong: the first worker's gradients are applied twice."""

    def apply(self, replica, worker, *what):
        super().apply(replica, worker, *what)
        if worker == 0:
            super().apply(replica, worker, *what)


def charged(comm, batch):
    """On a rank: a replica whose images take a millisecond each; `sent` adds up its gradients."""
    images, labels = DIGITS.train_images, DIGITS.train_labels
    params = Network().parameters(0, np.float64)
    of = Replica(KERNELS["reference"], params, images, labels, batch, Sgd(0.1))
    of.sent, gradients = np.zeros_like(params.flat), of.gradients

    def charge(chosen):
        loss = gradients(chosen)
        of.sent += of.grads.flat
        comm.compute(1e-3 * len(chosen))
        return loss

    of.gradients = charge
    return of


def epoch(comm, kind, staleness):
    """On a rank: the ledger, the parameters, and what updates add up to of all gradients."""
    of, method = charged(comm, 3), kind(comm, staleness)
    before, everything = of.params.flat.copy(), np.zeros_like(of.sent)
    method.epoch(of, np.arange(30), lambda loss, n: None)
    method.gather(of)
    comm.Allreduce(of.sent, everything)
    return method.ledger, of.params.flat, before - 0.1 / 3 * everything


def in_a_world(kind, staleness):
    world = World(4, "10us,1GB/s", speed={1: 5.0}, jitter=0.3, seed=1)
    return world.run(epoch, kind, staleness)


@pytest.mark.parametrize("network", ["report", "lenet5"])
def test_without_staleness_any_number_of_workers_takes_the_steps_of_one(network):
    for n in (2, 4, 14):  # also more workers than images in a batch
        check_virtual(n, Server, network)


@pytest.mark.parametrize("staleness", [0, 1, 3, "any"])
def test_every_gradient_is_applied_once_and_clocks_keep_within_bounds(staleness):
    bound = math.inf if staleness == "any" else staleness
    (ledger, params, expected), *others = in_a_world(Server, staleness)
    assert ledger.faults(bound) == []
    assert sum(ledger.missed.values()) == ledger.clocks.sum()
    assert ledger.lead == min(bound, ledger.lead) and (ledger.lead > 0) == (staleness != 0)
    np.testing.assert_allclose(params, expected, atol=1e-12)
    assert all(np.array_equal(params, other) for _, other, _ in others)


def test_a_worker_that_may_lead_does_so_by_all_that_it_may():
    leads = [in_a_world(Server, staleness)[0][0].lead for staleness in (0, 1, 3, "any")]
    assert leads[:3] == [0, 1, 3] and leads[3] > 3


@pytest.mark.parametrize(
    "kind, word",
    [
        (AgeCapped, "gradient applied, got 0"),
        (AgeCapped, "lead: expected"),
        (Leading, "lead: expected"),
    ],
)
def test_a_server_that_caps_the_age_of_gradients_instead_of_clocks_is_rejected(kind, word):
    assert word in "\n".join(in_a_world(kind, 2)[0][0].faults(2))


def test_a_gradient_that_is_applied_twice_is_told():
    faults = in_a_world(Twice, "any")[0][0].faults(math.inf)
    assert faults[0].startswith("image 0: expected 1 gradient applied, got 2; ")


def test_the_same_seed_gives_the_same_bits_and_staleness_others():
    first, again, other = (in_a_world(Server, s)[0] for s in (2, 2, 0))
    assert np.array_equal(first[1], again[1]) and first[0].missed == again[0].missed
    assert not np.array_equal(first[1], other[1])
    assert set(other[0].missed) == {0}


def test_one_that_waits_for_nobody_takes_less_time_beside_a_straggler():
    seconds = []
    for staleness in (0, "any"):
        world = World(4, "10us,1GB/s", speed=[1, 1, 1, 1], jitter=1.0, seed=3)
        world.run(epoch, Server, staleness)
        seconds.append(max(world.clocks))
    assert seconds[1] < 0.9 * seconds[0]


def test_a_worker_may_be_at_the_next_call_before_others_have_ended_this_one():
    def program(comm):
        of, method = charged(comm, 4), Server(comm, "any")
        for chosen in (np.arange(5), np.arange(2), np.arange(7)):
            method.step(of, chosen)
            if comm.rank == 0:
                assert method.ledger.faults(math.inf) == []
        return True

    assert all(World(6, speed={2: 9.0}).run(program))


class EqualPieces(Pool):
    def share(self, worker):
        return 1 / self.n_workers


class Equal(Server):
    pieces = EqualPieces


def test_a_straggler_does_not_decide_the_epoch_beyond_staleness_0():
    """With equal pieces, and a bound, it would: all come to wait for its clock."""
    seconds = {}
    for kind, staleness in ((Server, 0), (Server, 2), (Server, "any"), (Equal, 2)):
        world = World(4, "10us,1GB/s", speed={1: 5.0})
        world.run(batches_of_twelve, kind, staleness)
        seconds[kind, staleness] = world.seconds
    alone = seconds[Server, 0]
    assert seconds[Server, 2] < alone / 2 and seconds[Server, "any"] < alone / 2
    assert seconds[Equal, 2] > 0.8 * alone


def batches_of_twelve(comm, kind, staleness):
    of = charged(comm, batch=12)
    kind(comm, staleness).epoch(of, np.resize(np.arange(30), 300), lambda loss, n: None)


@pytest.mark.parametrize(
    "staleness, compress", [(0, None), (2, None), (0, "one_bit"), (2, "topk:0.1"), (2, "qsgd4")]
)
def test_a_resumed_training_is_an_unbroken_one(staleness, compress, tmp_path):
    def training(epochs, **files):
        def program(comm):
            way = Server(comm, staleness, compress)
            return train(DIGITS, "vector", epochs=epochs, batch=3, method=way, **files).params.flat

        return World(3, speed={1: 1.3}).run(program)[0]

    training(1, save=tmp_path / "one")
    assert np.array_equal(training(2, resume=tmp_path / "one"), training(2))
    with pytest.raises(ValueError, match="resume: expected"):
        World(3).run(
            lambda comm: train(
                DIGITS, batch=3, method=Server(comm, 1, "int8"), resume=tmp_path / "one"
            )
        )


@pytest.mark.parametrize("staleness", [0, "any"])
def test_compressed_gradients_are_fewer_bytes_and_learn(staleness):
    def program(comm, compress):
        how = {"epochs": 4, "batch": 12, "rate": 1.0, "progress": False}
        return train(few, "vector", method=Server(comm, staleness, compress), **how).history

    few, sent, losses = load("digits", 240, 20), {}, {}
    for compress in (None, "qsgd4"):
        world = Counting(4)
        losses[compress] = [row["loss"] for row in world.run(program, compress)[0]]
        sent[compress] = world.sent[1:, 0].sum()
    assert sent["qsgd4"] < sent[None] / 3
    assert losses["qsgd4"][-1] < 0.97 * losses["qsgd4"][0], losses


def test_without_staleness_messages_have_no_fault_that_mpi_would_hide():
    assert examine(lambda comm: steps(Server(comm), "report"), 3) == []


@pytest.mark.parametrize(
    "n, staleness, text",
    [(1, 0, "ranks: expected a server and a worker"), (2, -1, "staleness: expected")],
)
def test_what_is_impossible_is_refused(n, staleness, text):
    with pytest.raises(ValueError, match=text):
        World(n).run(Server, staleness)


def test_staleness_wants_an_optimiser_whose_steps_add_up():
    with pytest.raises(ValueError, match="optimizer: expected sgd, as gradients are stale, got"):
        World(2).run(lambda c: train(DIGITS, optimizer="momentum", method=Server(c, 1), batch=3))


PROGRAM = """
from cnnlab.distributed.server import Server
from cnnlab.ranks import job
from tests.distributed.test_server import on_real_ranks
from tests.distributed.uncut import check, steps

with job.together() as comm:
    check([steps(Server(comm), "lenet5")], "lenet5")
    on_real_ranks(comm)
    comm.Barrier()
    print("good")
"""


def on_real_ranks(comm):
    """Bounds and counts hold, all end with the same parameters, and 19 runs of 20 have learned."""
    learned = []
    for staleness, seed in itertools.product((1, "any"), range(10)):
        images, labels = DIGITS.train_images, DIGITS.train_labels
        of = Replica(KERNELS["vector"], Network().parameters(seed), images, labels, 3, Sgd(0.5))
        method = Server(comm, staleness)
        losses = [method.epoch(of, np.arange(30), lambda loss, n: None) for _ in range(40)]
        method.gather(of)
        assert all(
            np.array_equal(of.params.flat, other) for other in comm.allgather(of.params.flat)
        )
        learned.append(losses[-1] < losses[0] / 2)
        if comm.rank == 0:
            assert method.ledger.faults(method.staleness) == []
    assert sum(learned) >= 19, learned


@pytest.mark.mpi
def test_on_real_ranks_too():
    assert run(4, "-c", PROGRAM)[0].endswith("good\n")
