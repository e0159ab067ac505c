import os

import pytest

from cnnlab.data import load
from cnnlab.measure import bench
from cnnlab.measure.timing import Timing


def own_process(names, *plan):
    """Stands for the measurement: the number of the process in place of seconds."""
    return {"loops": Timing("loops", (float(os.getpid()),) * 2)}, {"loops": {"n_threads": 1}}


def test_processes_are_fresh_and_their_samples_kept_together(monkeypatch):
    monkeypatch.setattr(bench, "in_this_process", own_process)
    timings, facts = bench.fresh_epochs(2, ["loops"], None, 16, 1, None, 2)
    one, again, two, also = timings["loops"].samples
    assert one == again != two == also and os.getpid() not in (one, two)
    assert timings["loops"].processes == 2 and facts == {"loops": {"n_threads": 1}}


def test_in_one_process_it_is_this_one():
    timings, facts = bench.fresh_epochs(1, ["vector"], load("digits", 64, 10), 16, 1, None, 2)
    assert facts["vector"]["n_threads"] == 1 and timings["vector"].processes == 1
    assert set(timings) - {bench.ALONE, bench.TOGETHER} == {"vector", bench.PEAK}


def test_a_failure_in_a_process_is_raised_here():
    with pytest.raises(ValueError, match="batch"):
        bench.fresh_epochs(2, ["vector"], load("digits", 64, 10), 0, 1, None, 2)
