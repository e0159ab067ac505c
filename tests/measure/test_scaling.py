import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnnlab.kernels import allreduce
from cnnlab.measure import scaling
from cnnlab.measure.scaling import Amdahl, Usl, fit_amdahl, fit_usl
from cnnlab.measure.timing import Timing
from cnnlab.runtime import thread_pool


@settings(max_examples=30)
@given(serial=st.floats(0, 1), single=st.floats(1e-6, 1e3))
def test_amdahl_is_found_again(serial, single):
    workers = [4, 1, 2, 16]
    times = [single / Amdahl(serial).speedup(n) for n in workers]
    assert fit_amdahl(workers, times).serial_fraction == pytest.approx(serial, abs=1e-9)


def test_amdahl_is_a_least_squares_fit():
    # Minimises ((0.7 − 0.5) − s 0.5)² + ((0.4 − 0.25) − s 0.75)² over s.
    fit = fit_amdahl([1, 2, 4], [Timing("", (10.0,)), 7.0, 4.0])
    assert fit.serial_fraction == pytest.approx(0.2125 / 0.8125)
    assert Amdahl(0.1).speedup(9) == pytest.approx(5)
    assert str(Amdahl(0.05)) == "Amdahl, 5 % serial"
    assert str(Amdahl(1)) == "Amdahl, 100 % serial"


@pytest.mark.parametrize(("times", "serial"), [([1.0, 0.1], 0), ([1.0, 3.0], 1)])
def test_amdahl_clips(times, serial):
    assert fit_amdahl([1, 2], times).serial_fraction == serial


@pytest.mark.parametrize(
    ("workers", "times", "named"),
    [
        ([1, 2], [1.0], "times"),
        ([2, 4], [1.0, 1.0], "workers"),
        ([1], [1.0], "workers"),
        ([1, 2, 2], [1.0, 1.0, 1.0], "workers"),
        ([1, 0], [1.0, 1.0], "workers"),
        ([1, 2.5], [1.0, 1.0], "workers"),
        ([1, 2], [1.0, 0.0], "times"),
        ([1, 2], [1.0, math.nan], "times"),
    ],
)
def test_amdahl_validates(workers, times, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        fit_amdahl(workers, times)


@pytest.mark.parametrize("contention, coherence", [(0.0, 0.0), (0.1, 0.0), (0.03, 0.002)])
def test_usl_is_found_again(contention, coherence):
    law = Usl(contention, coherence)
    workers = [4, 1, 2, 16]
    fit = fit_usl(workers, [3 / law.speedup(n) for n in workers])
    assert (fit.contention, fit.coherence) == pytest.approx((contention, coherence), abs=1e-9)


def test_usl_without_coherence_is_amdahl_and_with_it_the_speedup_falls_again():
    assert Usl(0.2, 0).speedup(8) == pytest.approx(Amdahl(0.2).speedup(8))
    law = Usl(0.05, 0.01)
    assert law.speedup(1) == 1 and law.speedup(10) > law.speedup(40)
    assert str(law) == "USL, 5 % contention, 1 % coherence"


def test_usl_has_no_negative_parts_and_needs_three_points():
    fit = fit_usl([1, 2, 4], [1.0, 0.4, 0.2])  # faster than ideal
    assert (fit.contention, fit.coherence) == (0, 0)
    with pytest.raises(ValueError, match="two other numbers"):
        fit_usl([1, 2], [1.0, 0.5])


def test_every_thread_comes_to_every_barrier():
    counts = allreduce.counts()
    with thread_pool.threads(min(2, thread_pool.size())) as n_threads:
        parts = np.zeros((n_threads, 16), np.float32)
        scaling.barriers(parts, np.zeros(5, np.float32), counts, 7)
    assert counts[allreduce.BARRIER] == 7 * n_threads


def test_a_law_is_fitted_only_to_more_points_than_it_has_numbers():
    counts, relative = [1, 2, 3, 4], [1, 0.6, 0.4667, 0.4]
    fitted = [scaling.laws(counts[:n], relative[:n]) for n in (1, 2, 3, 4)]
    assert [result["amdahl"] is not None for result in fitted] == [False, False, True, True]
    assert [result["usl"] is not None for result in fitted] == [False, False, False, True]
    np.testing.assert_allclose(fitted[3]["amdahl"], 0.2, atol=1e-3)
