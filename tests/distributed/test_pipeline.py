"""A pipeline of stages takes the steps of one rank, whatever the schedule."""

import pytest

from cnnlab.distributed.pipeline import Pipeline
from cnnlab.network import NETWORKS
from cnnlab.ranks.pipeline import SCHEDULES
from tests.distributed.uncut import check_virtual


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("network", NETWORKS)
def test_any_number_of_ranks_takes_the_steps_of_one(schedule, network):
    most = len(NETWORKS[network].places) // SCHEDULES[schedule].chunks
    for n in range(1, min(most, 9) + 1):
        check_virtual(n, lambda comm: Pipeline(comm, schedule, 4), network)
    if most < 9:
        with pytest.raises(ValueError, match="pipeline: expected at most"):
            check_virtual(most + 1, lambda comm: Pipeline(comm, schedule), network)


@pytest.mark.parametrize("n_micro", [1, 2, 7, 20])  # the last: more than images
def test_a_batch_is_cut_into_any_number_of_micro_batches(n_micro):
    check_virtual(3, lambda comm: Pipeline(comm, "1f1b", n_micro), "report")


@pytest.mark.parametrize("kernels", ["reference", "loops"])
def test_stages_compute_with_any_strategy(kernels):
    check_virtual(2, Pipeline, "report", kernels)
