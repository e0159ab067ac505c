import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnnlab.kernels import allreduce
from cnnlab.measure import scaling
from cnnlab.measure.scaling import Amdahl, fit_amdahl
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


def test_every_thread_comes_to_every_barrier():
    counts = allreduce.counts()
    with thread_pool.threads(min(2, thread_pool.size())) as n_threads:
        parts = np.zeros((n_threads, 16), np.float32)
        scaling.barriers(parts, np.zeros(5, np.float32), counts, 7)
    assert counts[allreduce.BARRIER] == 7 * n_threads
