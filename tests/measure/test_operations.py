import numpy as np
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.measure import bench


def test_the_shapes_are_those_of_a_step_of_the_reports_network():
    shapes = bench.layer_shapes(7)
    assert shapes["conv_forward"] == {
        "x": (7, 1, 28, 28), "w": (6, 1, 5, 5), "b": (6,), "z": (7, 6, 24, 24)
    }  # fmt: skip
    assert shapes["pool_backward_input"] == {
        "dz": (7, 6, 6, 6), "w": (6, 4, 4), "dx": (7, 6, 24, 24)
    }  # fmt: skip
    assert shapes["dense_backward_weights"] == {"x": (7, 216), "dz": (7, 10), "dw": (10, 216)}
    assert shapes["sigmoid"] == {"z": (7, 6, 24, 24), "y": (7, 6, 24, 24)}
    assert shapes["cross_entropy"] == {"y": (7, 10), "labels": (7,), "dz": (7, 10)}
    assert "conv_backward_input" not in shapes  # no step needs the first layer's


@pytest.mark.parametrize("operation", bench.layer_shapes(1))
def test_every_operation_can_be_timed(operation):
    bench.layer_call("loops", operation, 2)()


def test_a_wrong_operation_is_not_timed(monkeypatch):
    def without_bias(x, w, b, z, stride=4):
        return KERNELS["reference"].kernel("pool_forward")(x, w, np.zeros_like(b), z, stride)

    monkeypatch.setattr(KERNELS["loops"].module, "pool_forward", without_bias)
    monkeypatch.delitem(KERNELS["loops"].__dict__, "pool_forward", raising=False)
    with pytest.raises(AssertionError, match="pool_forward of loops"):
        bench.layers(["loops"], 2, 1)


def test_layers_are_timed_by_operation_and_strategy(monkeypatch):
    monkeypatch.setattr(bench, "layer_shapes", lambda batch: {"sigmoid": SIGMOID})
    timings = bench.layers(["loops", "vector"], 2, 3)
    assert list(timings) == ["sigmoid"] and list(timings["sigmoid"]) == ["loops", "vector"]
    assert timings["sigmoid"]["vector"].n == 3


SIGMOID = {"z": (2, 6, 24, 24), "y": (2, 6, 24, 24)}
