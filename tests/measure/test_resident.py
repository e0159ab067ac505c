import pytest

from cnnlab import measure
from cnnlab.data import load


def test_the_device_trains_in_four_ways_that_are_checked():
    result = measure.contestants(["device"], load("digits", 20, 10), 8, 1, None)
    rungs = ["device", "device, fused", "device, block", "device, graph"]
    assert list(result) == rungs
    for one in result.values():
        one.check()
        for _ in range(3):  # 20 images are two batches and a half: then the set begins again
            one.steps()
    one._call = lambda: None
    with pytest.raises(AssertionError, match="parameters on the device"):
        one.check()
    one._step._labels[...] += 1  # what the device has is not what is expected
    with pytest.raises(AssertionError, match="gradients on the device"):
        one.check()
