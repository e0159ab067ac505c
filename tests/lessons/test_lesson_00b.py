import numpy as np
import pytest

from cnnlab.lessons import lesson_00b as lesson
from cnnlab.measure import machine, timing


def follow(places, steps):
    at = 0
    for _ in range(steps):
        at = int(places[at])
    return at


@pytest.mark.parametrize("size", [64, 4096, 40 << 10])
def test_a_path_visits_every_line_once_and_returns(size):
    places, n_lines = lesson.path(size), size // lesson.LINE
    assert places.nbytes == size
    visited = {follow(places, n) for n in range(n_lines)}
    assert visited == {n * lesson.LINE // 8 for n in range(n_lines)}
    assert follow(places, n_lines) == 0


def test_work_is_what_a_call_does(monkeypatch):
    monkeypatch.setattr(timing, "SHORTEST_SAMPLE", 0)
    monkeypatch.setattr(lesson, "LARGEST", 1 << 20)
    sizes = [4096, 2 << 20]
    assert [t.work for t in lesson.reading(sizes, 3)] == [1 << 20, 2 << 20]
    assert [t.work for t in lesson.following(follow, sizes, 3)] == [10_000, 10_000]
    read = lesson.striding(lambda a, stride: a[::stride].sum(), [1, 3], 3)
    assert [t.work for t in read] == [1 << 18, -(-(1 << 18) // 3)]
    added = lesson.adding(64, 3)
    assert {t.work for t in added.values()} == {64} and set(added) == {"1 sum", "2 sums", "4 sums"}


def test_pages_are_fresh_at_the_first_write():
    times = lesson.page_times(64, 5)
    assert [t.n for t in times.values()] == [5, 5] and set(times) == {"first write", "later write"}


def test_a_branch_is_timed_on_the_same_numbers_in_two_orders():
    seen = []
    lesson.branch_times(lambda a, limit: seen.append(a), 100, 1)
    mixed, sorted_ = seen[0], seen[-1]
    assert (np.sort(mixed) == sorted_).all() and (mixed != sorted_).any()


def test_the_time_on_several_cores_is_that_of_one_array(monkeypatch):
    def compare(calls, repeats):
        return {name: timing.Timing(name, (6.0,) * repeats) for name in calls}

    monkeypatch.setattr(lesson, "compare", compare)
    assert [t.median for t in lesson.on_cores([1, 2, 3], 4096, 2)] == [6, 3, 2]


@pytest.mark.parametrize(
    "caches, names", [({"L1d": 1 << 15, "L2": 1 << 20}, ["L1", "L2", "memory"]), (None, ["memory"])]
)
def test_there_is_a_roof_for_each_cache_and_for_memory(caches, names, monkeypatch):
    monkeypatch.setattr(machine, "describe", lambda: {"caches": caches})
    monkeypatch.setattr(machine, "memory_bandwidth", lambda: 5.0)
    result = machine.roofs.__wrapped__()
    assert list(result) == names and result["memory"] == 5 and min(result.values()) > 0


def test_values_stand_over_their_sizes_and_edges_are_named():
    ax = lesson.staircase(
        [1024, 4096], [(2, 1, 3), (8, 7, 9)], xlabel="size", ylabel="GB/s", edges={"L1": 2048}
    )
    line = ax.lines[0]
    assert list(line.get_xdata()) == [1024, 4096] and list(line.get_ydata()) == [2, 8]
    assert [text.get_text() for text in ax.texts] == ["L1"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "GB/s")


@pytest.mark.parametrize("size, text", [(1 << 14, "16 KiB"), (3 << 19, "1.5 MiB")])
def test_sizes_are_said_in_the_unit_that_suits_them(size, text):
    assert lesson.in_bytes(size) == text
