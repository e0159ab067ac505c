import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.lessons import lesson_57

DIGITS = load("digits", 320, 100)


def test_what_is_dropped_is_lost():
    made = lesson_57.Dropped(10, argument=0.1)
    first = np.arange(10, dtype=np.float32)
    made.choose(first, 1, 1)
    places, values = made.choose(np.float32([3, *[0] * 9]), 1, 1)
    assert places.tolist() == [0] and values.tolist() == [3]


def test_what_was_sent_last_is_noted():
    made = lesson_57.Noting(10, argument=0.2)
    places, _ = made.choose(np.arange(10, dtype=np.float32), 1, 1)
    assert made.latest.tolist() == places.tolist() == [8, 9]


def test_each_way_trains_at_its_density_and_sends_accordingly():
    result = lesson_57.by_density([0.2, 0.02], DIGITS, epochs=1, n_ranks=2)
    assert result.keys() == lesson_57.WAYS.keys()
    for way, group in result.items():
        for accuracy, _ in group.values():
            assert 0 <= accuracy <= 1
        warm = way in ("kept, warmed up", "DGC")
        assert group[0.2][1] >= group[0.02][1] if warm else group[0.2][1] > 5 * group[0.02][1]


def test_what_ranks_send_for_sums_is_counted_and_nothing_else():
    # two ranks, ten steps and one to warm up: a stream of all 2,428 numbers is dense
    _, n_bytes = lesson_57.learnt("streams:1", DIGITS, 0.1, n_ranks=2, epochs=1)
    assert n_bytes == 11 * 2 * (4 * 2428 + 4)


def test_a_training_that_diverges_guesses():
    assert lesson_57.learnt("streams:1", DIGITS, 1e9, epochs=1)[0] == 0.1


def test_a_sum_fills_up_as_chance_says():
    shares = [round(lesson_57.filled(0.01, p), 2) for p in (1, 64, 128)]
    assert shares == [0.01, 0.47, 0.72]
    chosen = lesson_57.random_places(20_000, 200, 64)
    assert all(places.dtype == np.int32 and (np.diff(places) > 0).all() for places in chosen)
    for p, share in zip((1, 8, 64), lesson_57.taken(chosen, 20_000, (1, 8, 64)), strict=True):
        assert share == pytest.approx(lesson_57.filled(0.01, p), rel=0.02)


def test_gradients_choose_places_of_their_own():
    chosen = lesson_57.chosen_places(DIGITS, 0.01, 4, n_steps=3)
    assert [places.size for places in chosen] == [24] * 4
    assert len({places.tobytes() for places in chosen}) == 4


def test_ways_to_choose_agree_before_they_are_timed():
    result = lesson_57.choosing((500,), 0.1, repeats=2)
    assert set(result[500]) == {"select", "np.partition", "np.argpartition"}
    values = np.random.default_rng(0).standard_normal(50).astype(np.float32)
    calls = {
        "wrong": lambda: (np.arange(5), None),
        "right": lambda: lesson_57.by_partition(values, 5),
    }
    verdicts = {name: lesson_57.same(calls, values, 5, name) for name in ("right", "wrong")}
    assert verdicts == {"right": True, "wrong": False}
