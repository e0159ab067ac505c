import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cnnlab.kernels import allreduce
from cnnlab.measure import scaling
from cnnlab.runtime import thread_pool


@settings(max_examples=30)
@given(serial=st.floats(0, 1))
def test_the_serial_share_of_amdahls_law_is_found_again(serial):
    workers = [4, 1, 2, 16]
    relative = [serial + (1 - serial) / n for n in workers]
    assert scaling.serial_share(workers, relative) == pytest.approx(serial, abs=1e-9)


def test_the_serial_share_is_a_least_squares_fit_and_a_share():
    # Minimises ((0.7 − 0.5) − s 0.5)² + ((0.4 − 0.25) − s 0.75)² over s.
    assert scaling.serial_share([1, 2, 4], [1, 0.7, 0.4]) == pytest.approx(0.2125 / 0.8125)
    assert [scaling.serial_share([1, 2], [1, time]) for time in (0.1, 3)] == [0, 1]


def test_the_table_has_a_line_for_each_number_of_threads_and_the_serial_shares():
    report = {"n_threads": [1, 2], "batch": 64, "seconds_per_epoch": [2.0, 1.25]}
    report |= {"seconds_interval": [(1.9, 2.1), (1.2, 1.3)], "efficiency": [0.98, 0.8]}
    report |= {"machine_efficiency": [1.0, None], "amdahl": 0.05, "serial": {"two barriers": 0.01}}
    lines = scaling.table(report).splitlines()
    assert lines[2].split() == "1 2 (1.9 to 2.1) 0.98 1.00".split()
    assert lines[3].split() == "2 1.25 (1.2 to 1.3) 0.80".split()
    assert lines[4] == "Fitted up to the cores: Amdahl, 5 % serial."
    assert lines[5].endswith("more threads do not share: 1.0% of a step (two barriers 1.0%).")


def test_every_thread_comes_to_every_barrier():
    counts = allreduce.counts()
    with thread_pool.threads(min(2, thread_pool.size())) as n_threads:
        parts = np.zeros((n_threads, 16), np.float32)
        scaling.barriers(parts, np.zeros(5, np.float32), counts, 7)
    assert counts[allreduce.BARRIER] == 7 * n_threads
