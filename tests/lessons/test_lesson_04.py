import pytest

from cnnlab.lessons import lesson_04
from cnnlab.measure.timing import Timing
from cnnlab.network import Network


def test_the_convolution_has_most_of_the_work():
    result = lesson_04.layer_shares_multiply_adds()
    assert sum(result.values()) == sum(Network().multiply_adds.values())
    assert lesson_04.shares(result)["convolution"] == pytest.approx(172_800 / 189_648)


def test_operations_are_added_up_by_layer(monkeypatch):
    took = {"conv_forward": 1.0, "conv_backward_bias": 2.0, "pool_forward": 4.0, "sigmoid": 8.0}
    took |= {"dense_forward": 3.0, "cross_entropy": 16.0}
    timed = {operation: {"loops": Timing("loops", (s,))} for operation, s in took.items()}
    monkeypatch.setattr(lesson_04, "layers", lambda names, batch, repeats: timed)
    result = lesson_04.seconds(["loops"], batch=60_000)["loops"]
    assert result == {"convolution": 3, "pooling": 4, "fully connected": 3, "sigmoid": 24}
    assert lesson_04.shares(result)["pooling"] == pytest.approx(0.4)
