import numpy as np
import pytest

from cnnlab.kernels.variants import one_core
from cnnlab.measure import rung_parts
from cnnlab.measure.timing import Timing


def test_rungs_and_their_sums_are_checked_then_timed(monkeypatch):
    rng = np.random.default_rng(0)
    arrays = (rng.random(shape, np.float32) for shape in ((16, 1, 9, 20), (2, 1, 5, 5), (2,)))
    block = one_core.Block(*arrays)
    whole, sums = rung_parts.timings(block, repeats=1)
    assert list(whole) == list(sums) == list(one_core.RUNGS)
    assert sums["3 rows"].name == "sums of 3 rows"
    monkeypatch.setattr(rung_parts, "sums_only", lambda rung: one_core.RUNGS[rung])
    with pytest.raises(AssertionError, match=r"^sums of 1 naive"):
        rung_parts.timings(block, repeats=1)


def test_the_sigmoid_has_what_is_left():
    whole, sums = {"a": Timing("a", (3.0,))}, {"a": Timing("a", (2.0,))}
    assert rung_parts.apart(whole, sums) == {"a": {"sums": 2, "sigmoid": 1}}
    assert rung_parts.apart(sums, whole) == {"a": {"sums": 3, "sigmoid": 0}}
