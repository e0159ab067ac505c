import pytest

from cnnlab import bench
from cnnlab.data import load


def test_the_device_trains_in_three_ways_that_are_checked():
    found = bench.contestants(["device"], load("digits", 20, 10), 8, 1, None)
    assert list(found) == ["device", "device, fused", "device, graph"]
    for one in found.values():
        one.check()
        for _ in range(3):  # 20 images are two batches: then the set begins again
            one.steps()
    one._step._labels[...] += 1  # what the device has is not what is expected
    with pytest.raises(AssertionError, match="gradients on the device"):
        one.check()
