import numpy as np
import pytest

from cnnlab.lessons import lesson_20
from cnnlab.ranks.cluster import cluster


@pytest.mark.mpi
def test_two_ranks_log_a_collective_and_go_to_and_fro():
    with cluster(2) as ranks:
        result = ranks.run(lesson_20.fastest, "broadcast", 10, 3, timeout=120)
        assert [[(e.kind, e.peer) for e in log] for log, *_ in result] == [
            [("send", 1)],
            [("receive", 0)],
        ]
        assert [(mean, rows) for _, mean, rows in result] == [(0, 0), (0, 0)]  # rank 0's zeros
        result = ranks.run(lesson_20.fastest, "gather", 10, 2, timeout=120)
        assert [rows for *_, rows in result] == [1, 0]  # rank 0 has a row of zeros, and one of ones
        trips, _ = ranks.run(lesson_20.round_trips, 5000, 3, timeout=120)
    assert set(trips) == {"array", "list"} and all(len(group) == 3 for group in trips.values())
    assert np.median(trips["list"]) > np.median(trips["array"])
