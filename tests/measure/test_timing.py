import math
import time

import numpy as np
import pytest

from cnnlab.measure import claims
from cnnlab.measure import timing as measure
from cnnlab.measure.timing import Ratio, Timing, compare, mean_interval, median_interval, same


class Clock:
    """A clock that only moves while work is done."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def works(self, *seconds, log=None, name=""):
        durations = iter(seconds) if len(seconds) > 1 else None

        def call():
            self.now += next(durations) if durations else seconds[0]
            if log is not None:
                log.append(name)

        return call


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def timed(call, **how):
    return compare({"loops": call}, **how)["loops"]


def test_a_timing_is_of_seconds_per_call_after_warming_up(clock):
    # A warm-up call, one that sizes the batch, then the samples.
    timing = timed(clock.works(9, 1, 2, 4, 3), repeats=3, work=12)
    assert timing == Timing("loops", (2, 4, 3), 12)
    assert (timing.median, timing.rate, timing.n) == (3, 4, 3)


def test_short_calls_are_batched(clock):
    log = []
    timing = timed(clock.works(3e-6, log=log), repeats=5)
    assert timing.samples == pytest.approx([3e-6] * 5)
    # 1 + 2 + … + 64 calls find that 64 last 0.19 ms; then five samples of 64.
    assert len(log) == 1 + 127 + 5 * 64


def test_min_time_is_kept_unless_few_repeats_are_asked_for(clock, monkeypatch):
    log = []
    timed(clock.works(1.0, log=log), repeats=1, min_time=3.5)
    assert len(log) == 1 + (1 + 2 + 4) + 4
    monkeypatch.setenv("CNNLAB_REPEATS", "2")
    log.clear()
    assert timed(clock.works(1e-3, log=log), repeats=15, min_time=1.0).n == 2
    assert len(log) == 1 + 1 + 2  # a warm-up, one that sizes the batch


def test_compare_alternates(clock):
    log = []
    contestants = {name: clock.works(1.0, log=log, name=name) for name in "abc"}
    timings = compare(contestants, repeats=4)
    assert "".join(log) == "aabbcc" + 4 * "abc"
    assert list(timings) == ["a", "b", "c"] and timings["b"].name == "b"


def test_compare_checks_all_contestants_first():
    calls = []
    contestants = {name: lambda: calls.append(1) for name in "ab"}
    for checks in ({"b": lambda: np.False_}, lambda name: name != "b"):
        with pytest.raises(AssertionError, match="b: wrong"):
            compare(contestants, checks=checks)
    assert not calls


def test_compare_refuses_a_check_without_contestant():
    with pytest.raises(ValueError, match="checks: expected names of contestants, got \\['typo'\\]"):
        compare({"a": int}, checks={"typo": bool})


@pytest.mark.parametrize("repeats", [0, 1.5])
def test_impossible_numbers_are_named(repeats):
    with pytest.raises(ValueError, match="repeats"):
        timed(int, repeats=repeats)


@pytest.mark.parametrize("samples", [(), (1.0, 0.0), (1.0, math.nan), (math.inf,)])
def test_timing_refuses_impossible_samples(samples):
    with pytest.raises(ValueError, match="samples"):
        Timing("loops", samples)


# Of 20 samples, the 6th and the 15th: P(B(20, 1/2) <= 5) = 0.0207, P(B(20, 1/2) <= 6) = 0.058.
@pytest.mark.parametrize("n", [5, 20])
def test_the_interval_of_a_mean_holds_it_in_95_of_100_cases(n):
    intervals = [mean_interval(row) for row in np.random.default_rng(0).normal(3, 2, (4000, n))]
    assert np.mean([abs(middle - 3) < half for middle, half in intervals]) == pytest.approx(
        0.95, abs=0.01
    )


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (3, 1), (5, 1), (6, 1), (9, 2), (11, 2), (20, 6)])
def test_interval_of_the_median(n, rank):
    assert median_interval(range(n, 0, -1)) == (rank, n + 1 - rank)


def test_interval_covers_the_median_of_a_skewed_distribution():
    draws = np.random.default_rng(0).exponential(size=(2000, 15))
    intervals = np.array([median_interval(row) for row in draws])
    covered = np.mean((intervals[:, 0] < math.log(2)) & (math.log(2) < intervals[:, 1]))
    assert 0.95 <= covered < 0.98  # exactly 0.965


def test_timing_reads_well():
    samples = (1.31e-3, 1.2e-3, 1.23e-3, 1.27e-3, 1.19e-3, 1.21e-3, 1.24e-3, 1.23e-3, 1.22e-3)
    assert str(Timing("", samples)) == "1.23 ms (1.20 to 1.27, n=9)"
    assert str(Timing("", (1234.5,))) == "1234 s (1234 to 1234, n=1)"
    assert str(Timing("", (45.6e-6,))).startswith("45.6 µs")
    assert str(Timing("", (7.8e-9,))).startswith("7.80 ns")
    assert str(Ratio(12.34, 11.0, 13.0, 11)) == "12.3× (11.0 to 13.0, n=11)"


def test_ratio_is_taken_pair_by_pair():
    # The machine slows down tenfold halfway: every pair still says 4.
    slow = Timing("slow", (4.0, 4.0, 40.0, 40.0))
    fast = Timing("fast", (1.0, 1.0, 10.0, 10.0))
    assert measure.ratio(slow, fast) == Ratio(4, 4, 4, 4)
    assert float(measure.speedup(slow, fast)) == 4
    assert measure.speedup(fast, slow).value == 0.25


def test_ratio_needs_pairs():
    with pytest.raises(ValueError, match=r"^samples: expected as many of .* got 2 of a and 1 of b"):
        measure.ratio(Timing("a", (1.0, 1.0)), Timing("b", (1.0,)))


def test_same_accepts_float32_rounding():
    expected = np.random.default_rng(0).normal(size=(50, 7, 3))
    same(expected.astype(np.float32), expected)
    same(np.array([1e-6, 1.0], np.float32), np.array([0.0, 1.0]))  # cancellation
    same(np.array([2**24 + 1, math.inf]), np.array([2**24 + 1, math.inf]))
    same(np.zeros((0, 3)), np.zeros((0, 3)))


def test_same_is_stricter_in_float64():
    with pytest.raises(AssertionError):
        same(np.array([1 + 1e-9]), np.array([1.0]))
    with pytest.raises(AssertionError):
        same(np.array([10_001]), np.array([10_000]))  # integers must be equal
    same(np.float32([1 + 1e-5]), np.array([1.0]))
    with pytest.raises(AssertionError):
        same(np.float32([1 + 1e-3]), np.array([1.0]))


@pytest.mark.parametrize(
    ("got", "expected", "message"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2)), r"z: expected shape \(3, 2\), got \(2, 3\)"),
        ([0, math.nan, math.nan], [0, 1, 2], r"z\[1\]: expected 1, got NaN.*2 of 3"),
        ([math.nan], [math.nan], "NaN"),
        ([1.0], [math.inf], "expected inf"),
        ([0.0, 5.0], [math.inf, 1.0], "2 of 2"),
        ([math.inf, 5.0], [math.inf, 1.0], r"z\[1\]: expected 1, got 5; 1 of 2"),
        ([[1, 5], [9, 4]], [[1, 4], [6, 4]], r"z\[1, 0\]: expected 6, got 9; 2 of 4 elements"),
        (None, [1.0], "z: expected numbers, got array\\(None"),
    ],
)
def test_same_is_specific(got, expected, message):
    with pytest.raises(AssertionError, match=message):
        same(got, expected, name="z")


def test_the_interval_of_several_processes_covers_those_of_each():
    one, two = (Timing("a", samples) for samples in ((1.0, 1.1, 1.2), (2.0, 2.1, 2.2)))
    both = measure.pooled([one, two])
    assert (both.n, both.processes, both.low, both.high) == (6, 2, 1.0, 2.2)
    halves = measure.pooled([Timing("b", tuple(s / 2 for s in t.samples)) for t in (one, two)])
    times = measure.ratio(both, halves)
    assert (times.value, times.low, times.high) == (2, 2, 2)
    other = measure.pooled([Timing("c", (1.0,) * 3), Timing("c", (1.0,) * 3)])
    assert (measure.ratio(both, other).low, measure.ratio(both, other).high) == (1.0, 2.2)


ONE = Timing("one thread", (2.0, 2.1, 1.9, 2.0, 2.0, 2.1))
TWO = Timing("two threads", (1.0, 1.0, 1.0, 1.1, 1.1, 1.0))
AGAIN = Timing("one more", (2.1, 2.0, 2.0, 2.0, 1.9, 2.1))


def test_the_faster_is_named_first_whichever_comes_first():
    said = "A step is 1.95 times faster with two threads than with one thread (1.82 to 2.10)."
    assert claims.compare(TWO, ONE, "A step") == claims.compare(ONE, TWO, "A step") == said


def test_where_the_interval_holds_one_no_difference_is_claimed():
    said = claims.compare(ONE, AGAIN, "A step")
    assert said.startswith("A step shows no difference between one thread and one more in this run")
    assert "faster" not in said


def test_a_claim_is_told_and_only_rendering_insists(monkeypatch, capsys):
    monkeypatch.delenv(claims.STRICT, raising=False)
    claims.claim("Two beat one.", True)
    claims.claim("One beats two.", False)
    said = "✓ Two beat one.\n✗ Not on this machine: One beats two.\n"
    assert capsys.readouterr().out == said
    monkeypatch.setenv(claims.STRICT, "1")
    claims.claim("Two beat one.", True)
    with pytest.raises(AssertionError, match=r"^claim: .* One beats two\.$"):
        claims.claim("One beats two.", False)
    with pytest.raises(TypeError, match=r"held: expected True or False, got 1\.5"):
        claims.claim("One beats two.", 1.5)


def test_a_difference_of_two_noisy_times_may_be_negative():
    assert [measure.in_words(s) for s in (-2e-6, 0.0, 1.5)] == ["-2.00 µs", "0 ns", "1.50 s"]
