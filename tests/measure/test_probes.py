import numpy as np
import pytest

from cnnlab.kernels.variants.probes import follow
from cnnlab.measure import machine, probes, timing


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Nothing is timed: only what is called, and how often, matters here."""
    monkeypatch.setattr(timing, "SHORTEST_SAMPLE", 0)


def test_sizes_grow_by_halves_and_thirds():
    assert probes.sizes(32 << 10) == [1024 * n for n in (4, 6, 8, 12, 16, 24, 32)]


@pytest.mark.parametrize("size", [64, 4096, 40 << 10])
def test_a_path_visits_every_line_once_and_returns(size):
    places, n_lines = probes.path(size), size // probes.LINE
    assert places.nbytes == size
    visited = {int(follow(places, n)) for n in range(n_lines)}
    assert visited == {n * probes.LINE // 8 for n in range(n_lines)}
    assert follow(places, n_lines) == 0


def test_work_is_what_a_call_does(monkeypatch):
    monkeypatch.setattr(probes, "LARGEST", 1 << 20)
    sizes = [4096, 2 << 20]
    assert [t.work for t in probes.reading(sizes, 3)] == [1 << 20, 2 << 20]
    assert [t.work for t in probes.following(sizes, 3)] == [10_000, 10_000]
    assert [t.work for t in probes.striding([1, 3], 3)] == [1 << 18, -(-(1 << 18) // 3)]
    assert {t.work for t in probes.adding(64, 3).values()} == {64}
    assert set(probes.adding(64, 3)) == {"1 sum", "2 sums", "4 sums"}


def test_pages_are_fresh_at_the_first_write():
    times = probes.page_times(64, 5)
    assert [t.n for t in times.values()] == [5, 5] and set(times) == {"first write", "later write"}


def test_a_branch_is_timed_on_the_same_numbers_in_two_orders(monkeypatch):
    seen = []
    monkeypatch.setattr(probes.probes, "roots_below", lambda a, limit: seen.append(a))
    probes.branch_times(100, 1)
    mixed, sorted_ = seen[0], seen[-1]
    assert (np.sort(mixed) == sorted_).all() and (mixed != sorted_).any()


def test_the_time_on_several_cores_is_that_of_one_array(monkeypatch):
    def compare(calls, repeats):
        return {name: timing.Timing(name, (6.0,) * repeats) for name in calls}

    monkeypatch.setattr(probes, "compare", compare)
    assert [t.median for t in probes.on_cores([1, 2, 3], 4096, 2)] == [6, 3, 2]


@pytest.mark.parametrize(
    "caches, names", [({"L1d": 1 << 15, "L2": 1 << 20}, ["L1", "L2", "memory"]), (None, ["memory"])]
)
def test_there_is_a_roof_for_each_cache_and_for_memory(caches, names, monkeypatch):
    monkeypatch.setattr(machine, "describe", lambda: {"caches": caches})
    monkeypatch.setattr(machine, "memory_bandwidth", lambda: 5.0)
    result = probes.roofs.__wrapped__()
    assert list(result) == names and result["memory"] == 5 and min(result.values()) > 0
