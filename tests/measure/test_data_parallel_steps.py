import pytest

from cnnlab.lessons import lesson_22
from cnnlab.ranks.cluster import cluster

pytestmark = pytest.mark.mpi


def test_every_way_is_timed_at_every_batch():
    with cluster(2) as ranks:
        result, other = ranks.run(lesson_22.samples, [16, 32], 2, 3, timeout=300)
    algorithms = "one rank", "on their own", "memory", "message", "through Python", "overlap"
    assert set(result) == {f"{way} {n}" for way in algorithms for n in (16, 32)} | {"allreduce"}
    assert all(len(group) == 3 and min(group) > 0 for group in result.values()) and set(
        other
    ) == set(result)


def test_ranks_and_threads_take_turns():
    ranks, threads = lesson_22.ranks_or_threads(2, batch=16, rounds=2)
    assert (ranks.name, threads.name) == ("2 × 1", "1 × 2")
    assert len(ranks.samples) == len(threads.samples) == 2 * 5
