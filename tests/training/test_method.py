import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.training import Method, Replica, Sgd, method, train
from cnnlab.training.method import digest

DIGITS = load("digits", 330, 100)


class Averaging(Method):
    """A way to train that no part of `training` knows: two copies, averaged after each epoch.

    It owns its whole program for an epoch, as a parameter server does.
    """

    def epoch(self, replica, order, tell):
        group, copies, total = replica, [], 0.0
        for half in np.array_split(order, 2):
            held = group.params.copy(), group.images, group.labels, group.batch, group.optimizer
            copies.append(Replica(group.strategy, *held))
            loss = super().epoch(copies[-1], half, tell)
            total += loss
        group.params.flat[:] = (copies[0].params.flat + copies[1].params.flat) / 2
        return total


def test_a_new_way_to_train_is_a_class_of_its_own():
    plain, averaged = (train(DIGITS, epochs=3, method=how) for how in (None, Averaging()))
    assert averaged.history[-1]["loss"] < averaged.history[0]["loss"]
    assert abs(averaged.params.flat - plain.params.flat).max() > 1e-3


def test_an_epoch_tells_of_every_image_and_returns_their_loss(monkeypatch):
    monkeypatch.setattr(method, "IN_A_ROW", 100)
    said, params = [], Network().parameters()
    data = DIGITS.train_images, DIGITS.train_labels
    replica = Replica(KERNELS["vector"], params, *data, 10, Sgd(0.1))
    loss = Method().epoch(replica, np.arange(330), lambda *news: said.append(news))
    assert [n for _, n in said] == [100, 100, 100, 30]
    assert loss == pytest.approx(sum(part for part, _ in said)) and loss > 0


class World:
    """A communicator of two ranks, the other of which has these facts."""

    rank, size = 0, 2

    def __init__(self, facts):
        self.facts = facts

    def allgather(self, mine):
        return [mine, {name: digest(fact) for name, fact in self.facts.items()}]


FACTS = {"data": (np.arange(6.0), np.arange(3)), "plan": {"seed": 1}, "parameters": np.ones(4)}


def test_ranks_that_have_the_same_agree():
    Method(World(FACTS)).agree(FACTS)


@pytest.mark.parametrize(
    "name, other",
    [
        ("data", (np.arange(6.0), np.arange(3)[::-1])),
        ("data", (np.arange(6.0) + 1e-9, np.arange(3))),
        ("plan", {"seed": 2}),
        ("parameters", np.ones(4) - np.eye(4)[0] * 1e-12),
    ],
)
def test_ranks_that_disagree_say_about_what(name, other):
    with pytest.raises(
        ValueError, match=f"ranks: expected the same {name} on all, rank 0 has .*, rank 1 has"
    ):
        Method(World(FACTS | {name: other})).agree(FACTS)


def test_alone_is_a_world_of_one():
    alone = Method()
    assert (alone.rank, alone.size, alone.total(3)) == (0, 1, 3)
    assert alone.share(5) == slice(0, 5) and alone.barrier() is None
