import functools

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.compressors.base import Compressor
from cnnlab.distributed.compressors.bits import Qsgd
from cnnlab.lessons import lesson_56
from cnnlab.lessons.lesson_56 import challenge_bits, said, tried, unbiased
from cnnlab.network import Network
from cnnlab.training import Sgd

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


def test_at_the_rate_that_pays_a_sum_takes_as_long_as_float32_which_costs_nothing():
    n, bandwidth, n_ranks = 4096, 1e9, 4
    seconds = n / lesson_56.rate_that_pays("qsgd4", n, n_ranks, bandwidth)  # 4 bytes of n/4 numbers
    short = lesson_56.Price(compressor("qsgd4")(n // n_ranks).n_bytes, seconds, seconds)
    assert lesson_56.crossover(lesson_56.Price(n, 0, 0), short, n_ranks) == pytest.approx(bandwidth)


def test_a_sum_is_its_work_and_its_messages_and_ways_cost_the_same_where_they_cross():
    whole, short = lesson_56.Price(4000, 1e-6, 1e-6), lesson_56.Price(500, 10e-6, 5e-6)
    assert short.work(4) == pytest.approx(5 * 10e-6 + 8 * 5e-6)
    assert short.seconds(4, 1e6, 1e-3) == pytest.approx(90e-6 + 6 * (1e-3 + 500e-6))
    at = lesson_56.crossover(whole, short, 4)
    assert whole.seconds(4, at) == pytest.approx(short.seconds(4, at))
    assert whole.seconds(4, at / 2) > short.seconds(4, at / 2)
    for seconds in (1e-6, 5e-7):  # as much work as float32 takes, and less
        assert lesson_56.crossover(whole, lesson_56.Price(500, seconds, seconds), 4) == np.inf


def test_a_crossing_is_found_between_two_bandwidths():
    rates = [1e6, 1e8]
    result = lesson_56.crossed(rates, [10, 1], [1, 10])
    assert result == pytest.approx(1e7) and lesson_56.in_range(result) == "10 MB/s"
    missed = lesson_56.crossed(rates, [10, 10], [1, 1])
    assert np.isnan(missed) and lesson_56.in_range(missed) == "beyond these bandwidths"


def test_training_tells_who_learns_and_who_diverges():
    data = load("digits", 400, 200)
    assert lesson_56.learnt("none", data, 2, rate=1e30) == 0.1
    result = lesson_56.accuracies({"a": "none", "b": lesson_56.nearest(8)}, data, (0,), rate=1e30)
    assert result["a"] == (32, [0.1]) and result["b"][0] == pytest.approx(
        8 * 615 / 607
    )  # of shards


DATA = load("digits", 400, 200)


class Remembers(Compressor):
    n_bytes = 1

    def pack(self, values):
        self.kept = values.copy()
        return np.zeros(1, np.uint8)

    def decode(self, message, values):
        values[:] = getattr(self, "kept", 0)


class Longer(Compressor):
    n_bytes = 8


def test_messages_must_be_what_is_sent_and_all_that_is_known():
    assert said(compressor("qsgd4")) == said(compressor("one_bit")) == ""
    assert "a rank that has not encoded" in said(Remembers)
    assert "expected uint8 (8,), got uint8 (4000,)" in said(Longer)


def test_the_challenge_is_told_and_won_in_fewer_bits(capsys):
    try_it = functools.partial(challenge_bits, data=DATA, best=8.0)
    assert try_it(..., goal=0.1) is None
    assert try_it(Remembers, goal=0.1) is None
    assert try_it(compressor("qsgd4"), goal=1.1) is None
    assert 4 < try_it(compressor("qsgd4"), goal=0.0) < 5
    assert try_it(compressor("fp16"), goal=0.0) == 16
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("not yet answered") and lines[1].startswith("✗ decode")
    assert "the goal is 110.0%" in lines[2] and "fewer than 8.00" in lines[3]
    assert "not fewer than 8.00" in lines[4]


def by_chance(values, chances):
    return np.floor(values + chances)


def test_weights_lie_on_the_grid_and_where_a_step_leads_in_the_mean():
    params, grads = Network().parameters(), Network().zeros()
    grads.flat[:] = 0.3 / 8
    group = lesson_56.OnGrid(1.0, 1 / 8, by_chance)
    group.begin(params)
    params.flat[:] = 0
    for _ in range(10):
        group.update(params, grads, 1)
    assert (params.flat * 8 == np.round(params.flat * 8)).all()
    np.testing.assert_allclose(params.flat.mean(), -10 * 0.3 / 8, rtol=0.05)


def test_a_fine_grid_learns_as_none_does():
    free = lesson_56.accuracy(DATA, Sgd(0.5), epochs=8)
    fine = lesson_56.accuracy(DATA, lesson_56.OnGrid(0.5, 2.0**-20, by_chance), epochs=8)
    assert free > 0.3 and abs(free - fine) < 0.02


FEW = np.array([0.3, -0.3, 1.0, 0.0, 2.5])


def test_a_mean_that_is_right_passes():
    result = tried(by_chance, FEW, 2000)
    assert result.shape == (2000, 5) and set(result[:, 0]) == {0, 1}
    assert unbiased("x", result, FEW, 1.0)


@pytest.mark.parametrize(
    "rounding, said",
    [
        (lambda v, u: np.rint(v), "of 2.5 arrives 2 in the mean"),
        (lambda v, u: np.floor(v + u**2), "arrives"),
        (lambda v, u: np.floor(v + 3 * u), "its levels are 1 apart"),
        (lambda v, u: v / 0, "expected finite numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_what_is_biased_or_far_off_is_told(rounding, said):
    verdict = unbiased("x", tried(rounding, FEW, 2000), FEW, 1.0)
    assert not verdict and said in str(verdict)


def test_each_number_has_levels_of_its_own():
    result = tried(by_chance, FEW, 2000) * 4
    assert unbiased("x", result, 4 * FEW, np.full(5, 4.0))
    assert not unbiased("x", result, 4 * FEW, np.array([4, 4, 4, 4, 1.0]))
