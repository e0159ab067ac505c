"""A parameter server: nothing lost, nothing applied twice, and no worker too far ahead."""

import json
import math
import os
import re
import signal

import numpy as np
import psutil
import pytest

from cnnlab.data import load
from cnnlab.distributed.server import Server
from cnnlab.distributed.trial import Counting
from cnnlab.network import Network
from cnnlab.ranks.virtual import World, examine
from cnnlab.training import OPTIMIZERS, checkpoint, train
from tests.distributed.uncut import DIGITS, check, check_virtual, steps
from tests.ranks.programs import PATIENCE, run, start
from tests.replicas import replica_of


def charged(comm, batch):
    """On a rank: a replica whose images take a millisecond each; `sent` adds up its gradients."""
    replica = replica_of(DIGITS, "reference", batch, 0.1)
    replica.sent, gradients = np.zeros_like(replica.params.flat), replica.gradients

    def charge(chosen):
        loss = gradients(chosen)
        replica.sent += replica.grads.flat
        comm.compute(1e-3 * len(chosen))
        return loss

    replica.gradients = charge
    return replica


class Noted(Server):
    """A server that notes how often each image's gradient came, and the largest lead it allowed."""

    times = None

    def serve(self, replica, order):
        self.times, self.most, read = np.zeros(len(order), int), 0, self.parcels.read

        def noted(message, gradient):
            loss, worker, first, last = read(message, gradient)
            self.times[first:last] += 1
            return loss, worker, first, last

        self.parcels.read = noted
        loss = super().serve(replica, order)
        del self.parcels.read
        return loss

    def reply(self, shard, worker):
        lead, goes_on = self.lead(worker), super().reply(shard, worker)
        self.most = max(self.most, lead) if goes_on else self.most
        return goes_on


def epoch(comm, staleness, servers=1):
    """On a rank: the promises, the parameters, and what updates add up to of all gradients."""
    replica, method = charged(comm, 3), Noted(comm, staleness, servers=servers)
    before, everything = replica.params.flat.copy(), np.zeros_like(replica.sent)
    method.epoch(replica, np.arange(30), lambda loss, n: None)
    method.gather(replica)
    comm.Allreduce(replica.sent, everything)
    noted = None if method.times is None else (method.most, keeps_promises(method, staleness))
    return noted, replica.params.flat, before - 0.1 / 3 * everything


def trained(world, how, **plan):
    """The parameters of all ranks after a training, which are the same."""

    def program(comm):
        return train(DIGITS, method=Server(comm, **how), progress=False, **plan).params.flat

    first, *others = world.run(program)
    assert all(np.array_equal(first, other) for other in others)
    return first


def keeps_promises(method, staleness):
    """Whether each image's gradient was applied once, and nobody went on who led by too much."""
    bound = math.inf if staleness == "any" else staleness
    return method.times is None or bool((method.times == 1).all() and method.most <= bound)


def uneven(n, program, *arguments):
    world = World(n, "10us,1GB/s", speed={n - 1: 5.0}, jitter=0.3, seed=1)
    return world.run(program, *arguments)


@pytest.mark.parametrize("n, servers", [(2, 1), (4, 1), (14, 1), (5, 2), (7, 3), (14, 4)])
def test_without_staleness_any_number_of_workers_takes_the_steps_of_one(n, servers):
    for network in ("report", "lenet5"):  # 14: more workers than images in a batch
        check_virtual(n, lambda comm: Server(comm, servers=servers), network)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_with_every_optimiser_several_servers_have_the_bits_of_one(optimizer):
    plan = {"optimizer": optimizer, "batch": 7, "epochs": 2}
    one, again, two, three = (
        trained(World(3 + n, jitter=0.5, seed=k), {"servers": n}, **plan)
        for k, n in enumerate((1, 1, 2, 3))
    )
    assert abs(one - Network().parameters(0).flat).max() > 1e-3
    assert all(np.array_equal(one, other) for other in (again, two, three))


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("staleness, lead", [(0, 0), (1, 1), (3, 3), ("any", 4)])
def test_every_gradient_is_applied_once_and_leads_keep_the_bound(staleness, lead, servers):
    first, again = (uneven(3 + servers, epoch, staleness, servers) for _ in range(2))
    for noted, params, expected in first + again:
        np.testing.assert_allclose(params, expected, atol=1e-12)
        assert np.array_equal(params, first[0][1])
        if noted:
            most, kept = noted
            assert kept and most >= lead
    assert [bool(noted) for noted, *_ in first] == [True] * servers + [False] * 3


def test_a_straggler_does_not_decide_the_epoch_beyond_staleness_0():
    def batches_of_twelve(comm, staleness):
        replica, order = charged(comm, batch=12), np.resize(np.arange(30), 300)
        Server(comm, staleness).epoch(replica, order, lambda loss, n: None)

    def seconds(staleness):
        world = World(4, "10us,1GB/s", speed={1: 5.0})
        world.run(batches_of_twelve, staleness)
        return world.seconds

    assert seconds(2) < seconds(0) / 2 and seconds("any") < seconds(0) / 2


@pytest.mark.parametrize("servers", [1, 2])
def test_calls_follow_each_other_and_may_have_fewer_images_than_workers(servers):
    def program(comm):
        replica, method = charged(comm, 4), Noted(comm, "any", servers=servers)
        for chosen in (np.arange(5), np.arange(2), np.arange(0), np.arange(7)):
            method.step(replica, chosen)
            assert keeps_promises(method, "any")
        return True

    assert all(World(7, speed={3: 9.0}).run(program))


@pytest.mark.parametrize("staleness", [0, "any"])
def test_compressed_gradients_are_fewer_bytes_and_learn(staleness):
    few = load("digits", 240, 20)

    def program(comm):
        how = {"epochs": 4, "batch": 12, "rate": 1.0, "progress": False}
        return train(few, method=Server(comm, staleness, "qsgd4"), **how).history

    world = Counting(4)
    losses = [row["loss"] for row in world.run(program)[0]]
    assert losses[-1] < 0.97 * losses[0]
    assert world.sent[1:, 0].sum() < world.sent[0, 1:].sum() / 3  # parameters go back whole


def test_the_busiest_server_takes_fewer_bytes_the_more_there_are():
    def busiest(servers):
        world = Counting(8 + servers)
        order = np.arange(3)
        world.run(lambda c: Server(c, servers=servers).step(replica_of(DIGITS, batch=3), order))
        return (world.sent.sum(0) + world.sent.sum(1))[:servers].max()

    one, four = busiest(1), busiest(4)
    assert one / 4 < four < one / 3.8


@pytest.mark.parametrize(
    "optimizer, how",
    [
        ("adam", {"servers": 2}),
        ("adam", {"compress": "one_bit"}),
        ("sgd", {"staleness": 2, "servers": 2}),
        ("sgd", {"staleness": 2, "compress": "topk:0.1"}),
    ],
)
def test_a_resumed_training_is_an_unbroken_one(optimizer, how, tmp_path):
    plan, file = {"optimizer": optimizer, "batch": 3, "epochs": 2}, tmp_path / "one"
    n = 2 + how.get("servers", 1)
    trained(World(n), how, **plan | {"epochs": 1}, save=file)
    resumed = trained(World(n), how, **plan, resume=file)
    assert np.array_equal(resumed, trained(World(n), how, **plan))
    with pytest.raises(ValueError, match="resume: expected"):
        trained(World(3), {"compress": "int8"}, **plan, resume=file)


@pytest.mark.parametrize("n, servers", [(3, 1), (4, 2)])
def test_messages_have_no_fault_that_mpi_would_hide(n, servers):
    assert examine(lambda comm: steps(Server(comm, servers=servers), "report"), n) == []


@pytest.mark.parametrize(
    "n, how, text",
    [
        (1, {}, "ranks: expected 2 or more, for a worker beside --servers 1, got 1"),
        (4, {"servers": 5}, "ranks: expected 6 or more, for a worker beside --servers 5"),
        (2, {"servers": 0}, "servers: expected .* got 0"),
        (2, {"staleness": -1}, "staleness: expected"),
        (4, {"servers": 2, "compress": "int8"}, "--servers: expected no --compress with it, got"),
        (4, {"servers": 2, "lost": "go-on"}, "--servers: expected no --lost go-on with it, got"),
        (2, {"lost": "never"}, "lost: expected one of end, go-on, got 'never'"),
        (2, {"lost": "go-on"}, "--lost: expected a staleness of 1 or more, or any, with go-on"),
        (2, {"staleness": 1}, "optimizer: expected sgd, as gradients are stale, got one that"),
        (2, {"compress": "streams"}, "compress: expected messages of one length, got streams"),
    ],
)
def test_what_is_impossible_is_refused(n, how, text):
    with pytest.raises(ValueError, match=f"^{text}"):
        trained(World(n), how, batch=3, optimizer="momentum")


REAL = """
from cnnlab.ranks import job
from tests.distributed import test_server

{before}
with job.together() as comm:
    test_server.{program}(comm)
"""


def on_real_ranks(comm):
    """Promises are kept, all end with the same parameters, and most runs have learned."""
    check([steps(Server(comm, servers=servers), "lenet5") for servers in (1, 2)], "lenet5")
    learned = []
    for staleness, seed in ((1, 0), ("any", 1), ("any", 2)):
        replica = replica_of(DIGITS, batch=3, seed=seed)
        method = Noted(comm, staleness, servers=1 + seed % 2)
        losses = [method.epoch(replica, np.arange(30), lambda loss, n: None) for _ in range(40)]
        method.gather(replica)
        assert len({params.tobytes() for params in comm.allgather(replica.params.flat)}) == 1
        learned.append(losses[-1] < losses[0] / 2)
        assert keeps_promises(method, staleness)
    assert sum(learned) >= 2, learned
    print("good")


@pytest.mark.mpi
def test_on_real_ranks_too():
    assert run(4, "-c", REAL.format(before="", program="on_real_ranks"))[0].endswith("good\n")


# By rank, in epoch 1, 2 and 3: before a gradient is sent, between it and the reply, at the end.
MOMENTS = {1: "gradients", 2: "Recv", 3: "allreduce"}


def go_on(comm):
    """On a rank: epochs, in which ranks 1, 2 and 3 are killed, each at another call."""
    replica = replica_of(DIGITS, batch=4, rate=0.3)
    method, losses = Noted(comm, "any", lost="go-on"), []
    for epoch in range(12):
        if at := MOMENTS.get(comm.rank) if epoch == comm.rank else None:
            dying = replica if at == "gradients" else method.comm
            setattr(dying, at, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        losses.append(method.epoch(replica, np.arange(30), lambda loss, n: None) / 30)
        method.gather(replica)
        assert keeps_promises(method, "any")
    ends = {params.tobytes() for params in method.comm.allgather(replica.params.flat)}
    if comm.rank == 0:
        print(json.dumps([losses, sorted(method.comm.lost), len(ends)]))
    method.leave(0)


@pytest.mark.mpi
def test_workers_may_be_killed_at_any_moment(no_memory_left):
    out, err = run(5, "-c", REAL.format(before="job.begin()", program="go_on"))
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
    summary = json.loads(out.splitlines()[-1])
    assert len(summary["history"]) == len(checkpoint.load(tmp_path / "it.npz").history) == 60
    assert summary["lost"] == "go-on" and not psutil.wait_procs(list(ranks.values()), timeout=10)[1]


def ranks_of(process):
    """The ranks of a job, which their guards have started, by their number."""
    started = psutil.Process(process.pid).children(recursive=True)
    started = [one for one in started if "cnnlab" in one.cmdline()]
    guards = {one.pid for one in started}
    return {one.environ()["PMI_RANK"]: one for one in started if one.ppid() in guards}
