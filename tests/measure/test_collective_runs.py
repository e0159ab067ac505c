import numpy as np
import pytest

from cnnlab.measure import worlds
from cnnlab.measure.timing import Timing
from cnnlab.ranks.cluster import cluster
from cnnlab.ranks.schedules import SCHEDULES


@pytest.mark.mpi
def test_two_ranks_log_a_collective_and_go_to_and_fro():
    with cluster(2) as ranks:
        found = ranks.run(worlds.fastest, "broadcast", 10, 3, timeout=120)
        assert [[(e.kind, e.peer) for e in log] for log, *_ in found] == [
            [("send", 1)],
            [("receive", 0)],
        ]
        assert [(mean, rows) for _, mean, rows in found] == [(0, 0), (0, 0)]  # rank 0's zeros
        found = ranks.run(worlds.fastest, "gather", 10, 2, timeout=120)
        assert [rows for *_, rows in found] == [1, 0]  # rank 0 has a row of zeros, and one of ones
        trips, _ = ranks.run(worlds.round_trips, 5000, 3, timeout=120)
    assert set(trips) == {"array", "list"} and all(len(of) == 3 for of in trips.values())
    assert np.median(trips["list"]) > np.median(trips["array"])


@pytest.mark.mpi
def test_a_race_has_every_schedule_at_every_size():
    sizes = [10, 1000]
    found = worlds.race(2, sizes)
    assert set(found.timed) == {"MPI", *SCHEDULES}
    assert all(len(of) == len(sizes) for of in found.timed.values())
    assert all(len(of) == 2 * len(sizes) for of in found.rounds.values())
    assert found.model.latency > 0 and found.by_rounds.allreduce("ring", 2, 100) > 0


def test_near_counts_what_is_within_a_quarter():
    timed = {"a": [Timing("a", (1.0,)), Timing("a", (2.0,))], "MPI": [Timing("MPI", (1.0,))] * 2}
    assert worlds.near({"a": [1.2, 2.6]}, timed) == 1
    assert worlds.near({"a": [1.2, 2.6]}, timed, within=0.5) == 2
