import pytest

from cnnlab.data import load


def test_torch_is_the_same_network():
    pytest.importorskip("torch")
    from cnnlab.bench.steps import contestants

    peer = contestants([], load("digits", 64, 10), 16, 1, "torch")["torch"]
    peer.check()
    peer.steps()
