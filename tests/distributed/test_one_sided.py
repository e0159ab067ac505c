"""Parameters in a window: every gradient added once, in both worlds, without a fault."""

import numpy as np
import pytest

from cnnlab.distributed.one_sided import one_sided
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.ranks import mpi
from cnnlab.ranks.virtual import World, examine
from cnnlab.training import Replica, Sgd
from tests.distributed.uncut import DIGITS
from tests.ranks.programs import run


def trained(comm, n_shards=1, n_images=30, size=4):
    """On a rank: the parameters, what steps add up to, and how many pieces each rank had."""
    params = Network().parameters(0, np.float64)
    of = Replica(
        KERNELS["reference"], params, DIGITS.train_images, DIGITS.train_labels, 12, Sgd(0.1)
    )
    gradients, sent, pieces = of.gradients, np.zeros_like(params.flat), []

    def noted(chosen):
        loss = gradients(chosen)
        sent.__iadd__(of.grads.flat)
        pieces.extend(chosen.tolist())
        if hasattr(comm, "compute"):
            comm.compute(1e-3 * len(chosen))
        return loss

    of.gradients, before = noted, params.flat.copy()
    one_sided(comm, of, np.arange(n_images), size, n_shards)
    total = np.zeros_like(sent)
    comm.Allreduce(sent, total, op=mpi.SUM)
    return params.flat, before - 0.1 / 12 * total, pieces


@pytest.mark.parametrize("n, n_shards", [(1, 1), (2, 1), (5, 1), (5, 3), (4, 4)])
def test_each_image_is_taken_and_each_gradient_added_once(n, n_shards):
    found = World(n, jitter=0.3, seed=1).run(trained, n_shards)
    for params, expected, _ in found:
        np.testing.assert_allclose(params, expected, atol=1e-12)
        assert np.array_equal(params, found[0][0])
    assert sorted(n for *_, pieces in found for n in pieces) == list(range(30))


def test_a_slow_rank_draws_less():
    *_, fast, slow = (len(pieces) for *_, pieces in World(3, speed={2: 6.0}).run(trained))
    assert slow < fast


def test_there_is_no_fault_that_mpi_would_hide():
    assert examine(lambda comm: trained(comm, 2, 8), 2) == []


PROGRAM = """
import numpy as np
from cnnlab.ranks import job
from tests.distributed.test_one_sided import trained

with job.together() as comm:
    for n_shards in (1, 3):
        params, expected, pieces = trained(comm, n_shards)
        np.testing.assert_allclose(params, expected, atol=1e-12)
        assert sorted(n for some in comm.allgather(pieces) for n in some) == list(range(30))
    print("good")
"""


@pytest.mark.mpi
def test_on_real_ranks_too():
    assert run(3, "-c", PROGRAM)[0].endswith("good\n")
