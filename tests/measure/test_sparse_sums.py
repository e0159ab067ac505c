import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.lessons import lesson_57
from cnnlab.lessons.lesson_57 import WHOLE, Echo, Step, random_places

DIGITS = load("digits", 64, 10)


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
    assert Step(1, 2, 3).seconds == 6


def test_a_gain_is_over_the_whole():
    assert lesson_57.gains({WHOLE: 6.0, "a": 2.0}) == {"a": 3.0}


@pytest.mark.mpi
def test_two_real_ranks_take_steps_on_a_slowed_network():
    from cnnlab.ranks.cluster import cluster

    algorithms = (WHOLE, "topq:16", "streams:0.01")
    with cluster(2) as ranks:
        result = ranks.run(lesson_57.real_steps, algorithms, DIGITS, 2e-3, 1e9, 8, 2, timeout=120)
    assert result[0].keys() == set(algorithms)
    assert all(seconds > 2e-3 for group in result[0].values() for seconds in group)
