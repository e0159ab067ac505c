"""Servers in two levels: the steps of one rank, promises kept, and fewer bytes at the busiest."""

import numpy as np
import pytest

from cnnlab.distributed.groups import Groups
from cnnlab.distributed.trial import sent
from cnnlab.ranks.virtual import World, examine
from cnnlab.training import train
from tests.distributed.test_servers import keeps_promises
from tests.distributed.uncut import DIGITS, check_virtual, steps


@pytest.mark.parametrize("n, groups", [(3, 1), (5, 2), (8, 2), (7, 3), (16, 3)])
def test_without_staleness_they_take_the_steps_of_one_rank(n, groups):
    for network in ("report", "lenet5"):  # also more workers than images in a batch
        check_virtual(n, lambda comm: Groups(comm, 0, groups), network)


@pytest.mark.parametrize("staleness", [0, 1, 3, "any"])
def test_every_gradient_is_applied_once_and_groups_keep_the_bound(staleness):
    keeps_promises(Groups, 8, 1, staleness)


def test_the_busiest_server_has_a_few_partners_instead_of_all_workers():
    one = sent(13, "server", "report", 3)
    two_levels = sent(16, "server", "report", 3, groups=3)
    for crossed, partners in ((one, 12), (two_levels, 5)):
        busiest = (crossed.sum(0) + crossed.sum(1)).max()
        assert busiest == pytest.approx(3 * 2 * 4 * 2428 * partners, rel=0.02)


def test_a_resumed_training_is_an_unbroken_one(tmp_path):
    def training(epochs, **files):
        def program(comm):
            how = {"epochs": epochs, "batch": 3, "optimizer": "momentum", **files}
            method = Groups(comm, 0, 2)
            found = train(DIGITS, method=method, **how).params.flat
            method.close()
            return found

        return World(6).run(program)[0]

    training(1, save=tmp_path / "one")
    assert np.array_equal(training(2, resume=tmp_path / "one"), training(2))


def test_messages_have_no_fault_that_mpi_would_hide():
    def program(comm):
        method = Groups(comm, 0, 2)
        found = steps(method, "report")
        method.close()
        return found

    assert examine(program, 5) == []


def test_a_group_without_a_worker_is_refused():
    with pytest.raises(ValueError, match=r"^--groups: expected at least 7 ranks for 3 groups, got"):
        World(6).run(Groups, 0, 3)
