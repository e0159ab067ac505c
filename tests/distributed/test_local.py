"""Local SGD: with an average after each step, the steps of one rank."""

import functools

import numpy as np
import pytest

from cnnlab.distributed.averaging import Local
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.network import NETWORKS
from cnnlab.ranks.schedules import block
from cnnlab.ranks.virtual import World
from tests.distributed.apart import BATCHES, models_by_formula, on_ranks, replica
from tests.distributed.uncut import check_virtual
from tests.ranks.programs import run

EACH = functools.partial(Local, every=1)


@pytest.mark.parametrize("network", NETWORKS)
def test_averaged_after_each_step_any_number_of_ranks_takes_the_steps_of_one(network):
    for n in (1, 3, 13):  # also more than images in a batch
        check_virtual(n, EACH, network)


def test_averaged_after_each_step_it_is_data_parallelism():
    for n in (2, 5):
        (local, own), (data, _) = on_ranks(n, EACH), on_ranks(n, DataParallel)
        np.testing.assert_allclose(local, data, atol=1e-12)
        assert np.ptp(own, axis=0).max() == 0


PROGRAM = """
import numpy as np
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.ranks import job
from tests.distributed.apart import steps
from tests.distributed.test_local import EACH
from tests.distributed.uncut import check, steps as uncut_steps

with job.together() as comm:
    local, data = steps(comm, EACH)[0], steps(comm, DataParallel)[0]
    np.testing.assert_allclose(local, data, atol=1e-12)
    check([uncut_steps(EACH(comm), "lenet5")], "lenet5")
    comm.Barrier()
    print("good")
"""


@pytest.mark.mpi
def test_on_real_ranks_too():
    assert run(4, "-c", PROGRAM)[0].endswith("good\n")


def test_models_are_averaged_after_every_few_steps_and_at_the_end_of_an_epoch():
    """Two ranks, and the same number of images on each of them."""

    def meet(models, step):  # what an epoch left, and what three steps did
        return np.stack([models.mean(0)] * 2) if step in (0, 3) else models

    models = models_by_formula(2, meet, before=True)
    result, own = on_ranks(2, functools.partial(Local, every=3))
    np.testing.assert_allclose(own, models, atol=1e-12)
    np.testing.assert_allclose(result, models.mean(0), atol=1e-12)
    assert np.ptp(models, axis=0).max() > 1e-3 and len(BATCHES) == 5


def test_a_model_counts_by_its_images():
    """Three ranks share eleven images, and then two, before they meet."""
    batches, before = (np.arange(11), np.arange(2)), {}

    def program(comm):
        group, method = replica(), Local(comm, every=2)
        for chosen in batches:
            method.step(group, chosen)
            before.setdefault(comm.rank, group.params.flat.copy())
        return group.params.flat

    results, expected = World(3).run(program)[0], 0
    for rank in range(3):
        shares = [len(b[slice(*block(rank, 3, len(b)))]) for b in batches]
        group = replica()
        group.params.flat[:] = before[rank]
        group.gradients(batches[1][slice(*block(rank, 3, 2))])
        if shares[1]:
            group.update(shares[1])
        expected = expected + sum(shares) / 13 * group.params.flat
    np.testing.assert_allclose(results, expected, atol=1e-12)
