import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.training import Method, method
from cnnlab.training.method import digest
from tests.replicas import replica_of

DIGITS = load("digits", 330, 100)


def test_an_epoch_tells_of_every_image_and_returns_their_loss(monkeypatch):
    monkeypatch.setattr(method, "IN_A_ROW", 100)
    said, replica = [], replica_of(DIGITS, batch=10)
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
