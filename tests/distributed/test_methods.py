"""Every way to cut a network: one to nine real ranks, and messages that hide no fault."""

import functools

import pytest

from cnnlab.distributed.model import CUTS, ModelParallel
from cnnlab.distributed.pipeline import Hybrid, Pipeline
from cnnlab.distributed.sharded import Sharded
from cnnlab.ranks.pipeline import SCHEDULES
from cnnlab.ranks.virtual import examine
from tests.distributed.uncut import steps
from tests.ranks.programs import run

PROGRAM = """
from cnnlab.distributed.pipeline import Hybrid
from cnnlab.distributed.model import ModelParallel
from cnnlab.distributed.pipeline import Pipeline
from cnnlab.ranks.pipeline import SCHEDULES
from cnnlab.distributed.sharded import Sharded
from cnnlab.network import NETWORKS
from cnnlab.ranks import job
from tests.distributed.uncut import check, steps

GRIDS = {9: (1, 3, 3), 8: (2, 2, 2), 6: (3, 2, 1), 4: (2, 1, 2), 3: (1, 1, 3)}

with job.together() as world:
    for first in (9, 8, 7, 6, 5):  # and, beside them, the other 1, 2, 3 or 4
        comm = world.Split(world.rank < first)
        n, methods = comm.size, [ModelParallel(comm, cut) for cut in ("features", "pixels")]
        methods.append(Sharded(comm))
        if n in GRIDS:
            methods.append(Hybrid(comm, GRIDS[n], n_micro=2))
        for name, network in NETWORKS.items():
            fit = [s for s in SCHEDULES if n * SCHEDULES[s].chunks <= len(network.places)]
            for method in methods + [Pipeline(comm, schedule, 4) for schedule in fit]:
                check([steps(method, name)], name)
    world.Barrier()
    print("good")
"""


@pytest.mark.mpi
def test_one_to_nine_real_ranks_take_the_steps_of_one():
    assert run(9, "-c", PROGRAM)[0].endswith("good\n")


def program(comm, make):
    method = make(comm)
    result = steps(method, "report")
    method.close()
    return result


@pytest.mark.parametrize(
    "make",
    [
        *(functools.partial(Pipeline, schedule=schedule, n_micro=3) for schedule in SCHEDULES),
        *(functools.partial(ModelParallel, cut=cut) for cut in CUTS),
        functools.partial(Hybrid, grid=(1, 3, 1), schedule="zero-bubble"),
        Sharded,
    ],
)
def test_no_method_has_a_fault_that_mpi_would_hide(make):
    assert examine(program, 3, make) == []
