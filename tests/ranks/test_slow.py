"""A slowed network on real ranks: what MPI gives, no earlier than the link says."""

import json
import os

import pytest

from cnnlab.ranks.slow import Wire
from cnnlab.ranks.virtual import Link
from tests.ranks.programs import run


def test_messages_of_a_rank_go_out_one_after_the_other():
    wire = Wire(Link(latency=1.0, bandwidth=100.0))
    assert wire.send(200, 10.0) == (12.0, 13.0)
    assert wire.send(100, 10.5) == (13.0, 14.0)  # waits for the first
    assert wire.send(100, 20.0) == pytest.approx((21.0, 22.0))


@pytest.mark.mpi
@pytest.mark.parametrize("n_ranks", [1, 2, 3])
def test_a_slowed_network_does_what_mpi_does_and_takes_its_time(n_ranks):
    """See the program: results, order, nothing lost, any source, and not before its time."""
    here = os.path.dirname(__file__)
    out, _ = run(n_ranks, "-m", "mpi4py", os.path.join(here, "slow_program.py"))
    assert out.count("as on MPI") == n_ranks


TRAIN = "-m cnnlab train --data digits --images 96 --batch 32 --epochs 1 --ranks data --json"


@pytest.mark.mpi
def test_training_over_a_slowed_network_learns_the_same_and_takes_longer():
    lines = []
    for link in ((), ("--link", "20ms,1GB/s")):
        out, _ = run(2, *TRAIN.split(), *link)
        lines.append(out.splitlines())
    first = "2 ranks, network slowed to links of 20 ms and 1 GB/s: seconds are measured on it"
    assert lines[1][0] == first
    plain, slowed = (json.loads(one[-1]) for one in lines)
    assert (plain["link"], slowed["link"]) == (None, "20ms,1GB/s")
    assert slowed["train_loss"] == pytest.approx(plain["train_loss"], abs=1e-4)
    assert slowed["seconds_per_epoch"] > 3 * 20e-3  # three steps, an allreduce each
