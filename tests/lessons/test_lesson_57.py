import functools

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.compressors.topk import Streams
from cnnlab.lessons import lesson_57
from cnnlab.lessons.lesson_57 import WHOLE, Echo, StepTime, challenge_streams, random_places, said

DIGITS = load("digits", 320, 100)
MINE = functools.partial(Streams, argument=0.2)
PLAN = {"n_ranks": 2, "epochs": 3}


def choosing(places, values):
    class Made:
        def choose(self, gradient, n_images, n_ranks):
            return places, values

    return lambda n, seed: Made()


@pytest.mark.parametrize(
    "places, values, word",
    [
        (np.arange(3), np.ones(3, np.float32), "int64"),
        (np.arange(3, dtype=np.int32), np.ones(3), "float64"),
        (np.arange(3, dtype=np.int32), np.ones(2, np.float32), "(2,)"),
        (np.int32([2, 1]), np.ones(2, np.float32), "ascending"),
        (np.int32([1, 1]), np.ones(2, np.float32), "each once"),
        (np.int32([1, 1000]), np.ones(2, np.float32), "to 999"),
    ],
)
def test_what_cannot_be_added_up_is_told(places, values, word):
    assert word in said(choosing(places, values))
    assert said(choosing(np.int32([]), np.float32([]))) == said(MINE) == ""


def test_fewer_bytes_at_the_goal_are_told(capsys):
    n_bytes = challenge_streams(MINE, 0.8, DIGITS, 0.0, 10**6, **PLAN)
    assert n_bytes > 0 and f"{10**6 / n_bytes:.2f} times fewer" in capsys.readouterr().out
    assert challenge_streams(MINE, 0.8, DIGITS, 1.1, 10**6, **PLAN) is None
    assert "the goal is 110.0%" in capsys.readouterr().out
    assert challenge_streams(..., 0.8, DIGITS, 0.5, 10**6) is None
    assert "not yet" in capsys.readouterr().out


def test_bytes_of_a_sum_are_counted_and_messages_take_their_time():
    result = lesson_57.sums((WHOLE, "streams:0.01", "topk:0.01"), 10_000, (2, 8), "1ms,1GB/s")
    assert result["streams:0.01"][2].n_bytes == 4 + 100 * 8
    assert result["topk:0.01"][2].n_bytes == 2 * 50 * 8
    assert result[WHOLE][2].n_bytes >= 4 * 10_000
    for way, n_rounds in (("streams:0.01", 3), ("topk:0.01", 14)):
        assert 1e-3 * n_rounds <= result[way][8].seconds < 1.2e-3 * n_rounds


def test_the_bytes_of_streams_are_predicted_up_to_where_they_are_dense():
    for k, n_ranks in ((20, 16), (200, 16), (1000, 8)):
        predicted = lesson_57.stream_bytes(2000, k, n_ranks)
        counted = lesson_57.counted_bytes(random_places(2000, k, n_ranks), 2000)
        assert predicted == pytest.approx(counted, rel=0.03)


def test_the_work_of_a_rank_is_that_of_as_many_messages():
    echo, calls = Echo(4), []
    echo.Sendrecv = lambda sent, dest, tag, received, *_: calls.append(np.size(sent))
    lesson_57.adder(echo, "qsgd4")(np.ones(4096, np.float32))
    assert calls == [2 * 4 + 512] * 6  # to three others, twice
    flat = np.ones(8, np.float32)
    lesson_57.adder(Echo(2), "none")(flat)
    assert (flat == 2).all()


def test_a_virtual_step_is_the_sum_of_its_parts():
    result = lesson_57.virtual_steps(("qsgd4", WHOLE), DIGITS, 2, ["1ms,1GB/s", "9ms,1GB/s"], 8)
    fast, slow = result["1ms,1GB/s"]["qsgd4"], result["9ms,1GB/s"]["qsgd4"]
    assert slow.messages - fast.messages == pytest.approx(0.016, rel=0.01)
    assert (slow.compute, slow.work) == (fast.compute, fast.work) and min(fast) > 0
    assert StepTime(1, 2, 3).seconds == 6


def test_a_gain_is_over_the_whole():
    assert lesson_57.gains({WHOLE: 6.0, "a": 2.0}) == {"a": 3.0}


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


def test_what_ranks_send_for_sums_is_counted_and_nothing_else():
    # two ranks, ten steps and one to warm up: a stream of all 2,428 numbers is dense
    _, n_bytes = lesson_57.learnt("streams:1", DIGITS, 0.1, n_ranks=2, epochs=1)
    assert n_bytes == 11 * 2 * (4 * 2428 + 4)


def test_a_training_that_diverges_guesses():
    assert lesson_57.learnt("streams:1", DIGITS, 1e9, epochs=1)[0] == 0.1


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


def test_bytes_lie_left_and_seconds_right():
    result = {"a": {2: (100, 1e-3), 4: (200, 2e-3)}, "b": {2: (10, 1e-4), 4: (20, 3e-4)}}
    left, right = lesson_57.by_ranks(result).figure.axes
    assert [list(line.get_ydata()) for line in left.lines] == [[100, 200], [10, 20]]
    assert [list(line.get_ydata()) for line in right.lines] == [[1e-3, 2e-3], [1e-4, 3e-4]]
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["a", "b"]
