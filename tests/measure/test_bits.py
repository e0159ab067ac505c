import functools

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.compressors.bits import Qsgd
from cnnlab.lessons import lesson_56
from cnnlab.lessons.lesson_56 import unbiased
from cnnlab.ranks.cluster import cluster

VALUES = np.random.default_rng(0).standard_normal(1001).astype(np.float32)
UNIT = np.repeat([abs(part).max() / 7 for part in (VALUES[:512], VALUES[512:])], 512)[:1001]


def test_in_numpy_it_is_unbiased_too_and_both_read_each_others_messages():
    plain, compiled = lesson_56.InNumPy(1001), Qsgd(1001)
    assert unbiased("NumPy", lesson_56.arriving(plain, VALUES, 1000), VALUES, UNIT)
    for sender, reader in ((plain, compiled), (compiled, plain)):
        mine, theirs = np.empty((2, 1001), np.float32)
        message = sender.encode(VALUES)
        sender.decode(message, mine)
        reader.decode(message, theirs)
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_to_the_nearest_is_biased():
    result = lesson_56.arriving(lesson_56.nearest(4)(1001), VALUES, 100)
    assert abs(result - VALUES).max() <= UNIT.max() * 0.50001
    assert not unbiased("nearest", result, VALUES, UNIT)


@pytest.mark.parametrize(
    "way, expected", [("none", 32), ("fp16", 16), (lesson_56.IN_NUMPY, 4.0625)]
)
def test_scales_count_as_bits(way, expected):
    assert lesson_56.bits_a_number(way, 1024) == expected


def test_speeds_are_of_float32_beside_a_copy():
    result = lesson_56.speeds(["qsgd4"], 4096, repeats=3)
    assert list(result) == ["copy", "qsgd4"] and result["copy"]["encode"].work == 4 * 4096
    assert result["copy"]["encode"].rate > result["qsgd4"]["encode"].rate


def test_at_the_rate_that_pays_a_sum_takes_as_long_as_float32_which_costs_nothing():
    n, bandwidth, n_ranks = 4096, 1e9, 4
    seconds = n / lesson_56.rate_that_pays("qsgd4", n, n_ranks, bandwidth)  # 4 bytes of n/4 numbers
    short = lesson_56.Cost(compressor("qsgd4")(n // n_ranks).n_bytes, seconds, seconds)
    assert lesson_56.crossover(lesson_56.Cost(n, 0, 0), short, n_ranks) == pytest.approx(bandwidth)


def test_a_sum_is_its_work_and_its_messages_and_ways_cost_the_same_where_they_cross():
    whole, short = lesson_56.Cost(4000, 1e-6, 1e-6), lesson_56.Cost(500, 10e-6, 5e-6)
    assert short.work(4) == pytest.approx(5 * 10e-6 + 8 * 5e-6)
    assert short.seconds(4, 1e6, 1e-3) == pytest.approx(90e-6 + 6 * (1e-3 + 500e-6))
    at = lesson_56.crossover(whole, short, 4)
    assert whole.seconds(4, at) == pytest.approx(short.seconds(4, at))
    assert whole.seconds(4, at / 2) > short.seconds(4, at / 2)
    for seconds in (1e-6, 5e-7):  # as much work as float32 takes, and less
        assert lesson_56.crossover(whole, lesson_56.Cost(500, seconds, seconds), 4) == np.inf


def test_a_crossing_is_found_between_two_bandwidths():
    rates = [1e6, 1e8]
    result = lesson_56.crossed(rates, [10, 1], [1, 10])
    assert result == pytest.approx(1e7) and lesson_56.in_range(result) == "10 MB/s"
    missed = lesson_56.crossed(rates, [10, 10], [1, 1])
    assert np.isnan(missed) and lesson_56.in_range(missed) == "beyond these bandwidths"


def test_crossings_are_predicted_and_measured():
    costs = {"none": lesson_56.Cost(4000, 1e-6, 1e-6), "short": lesson_56.Cost(500, 10e-6, 5e-6)}
    rates = np.geomspace(1e6, 1e9, 13)
    sums = {b: {way: [group.seconds(2, b)] * 3 for way, group in costs.items()} for b in rates}
    (predicted, seen), *rest = lesson_56.crossings(costs, sums, 2).values()
    assert not rest and seen == pytest.approx(predicted, rel=0.1)


def test_training_tells_who_learns_and_who_diverges():
    data = load("digits", 400, 200)
    learn = functools.partial(lesson_56.learnt, "qsgd4", data, 2, epochs=1)
    assert learn() == learn()[:1] or len(learn()) == 1
    assert lesson_56.learnt("none", data, 2, rate=1e30) == []
    result = lesson_56.accuracies({"a": "none", "b": lesson_56.nearest(8)}, data, (0,), rate=1e30)
    assert result["a"] == (32, [0.1]) and result["b"][0] == pytest.approx(
        8 * 615 / 607
    )  # of shards


@pytest.mark.mpi
def test_two_real_ranks_time_sums_and_steps():
    with cluster(2) as ranks:
        costs, result = ranks.run(lesson_56.sums, ["none", "qsgd4"], 1 << 14, [1e6, 1e7], 3)[0]
        steps = ranks.run(lesson_56.steps, ["none", "qsgd4"], "report", 1e6, 3)[0]
    assert costs["qsgd4"].n_bytes == 4 * 16 + 4096 and costs["none"].encode > 0
    assert all(min(group["none"]) >= 2 * (1 << 15) / rate for rate, group in result.items())
    assert np.median(result[1e6]["qsgd4"]) < np.median(result[1e6]["none"])
    assert np.median(steps["qsgd4"]) < np.median(steps["none"])
