"""The layers: what follows from the shape of an input, and sizes and shapes that are refused."""

import numpy as np
import pytest

from cnnlab.network import AveragePool, Conv, Dense, MaxPool, Pool, ReLU, Sigmoid

MAPS = 3, 9, 11


@pytest.mark.parametrize(
    "layer, output, parameters, multiply_adds",
    [
        (Conv(5, 2), (5, 8, 10), {"w": (5, 3, 2, 2), "b": (5,)}, 5 * 8 * 10 * 3 * 2 * 2),
        (Pool(4), (3, 2, 2), {"w": (3, 4, 4), "b": (3,)}, 3 * 2 * 2 * 4 * 4),
        (AveragePool(4), (3, 2, 2), {}, 3 * 2 * 2 * 4 * 4),
        (MaxPool(4), (3, 2, 2), {}, 0),
        (Dense(7), (7,), {"w": (7, 297), "b": (7,)}, 7 * 297),
        (Sigmoid(), MAPS, {}, 0),
        (ReLU(), MAPS, {}, 0),
    ],
)
def test_shapes_and_work_follow_from_the_input(layer, output, parameters, multiply_adds):
    assert layer.output_shape(MAPS) == output
    assert layer.parameter_shapes(MAPS) == parameters
    assert layer.multiply_adds(MAPS) == multiply_adds


def test_only_pooling_tells_its_operation_a_stride():
    pooling = [Pool(3), AveragePool(3), MaxPool(3)]
    assert [layer.stride for layer in pooling] == [(3,)] * 3
    assert [layer.stride for layer in (Conv(2, 3), Dense(3), Sigmoid())] == [()] * 3


def test_an_average_is_a_pooling_with_equal_weights_that_sum_to_one():
    w, b = AveragePool(4).fixed_weights(MAPS, np.float64)
    assert {"w": w.shape, "b": b.shape} == Pool(4).parameter_shapes(MAPS)
    assert (w.sum(axis=(1, 2)) == 1).all() and (w == w[0, 0, 0]).all() and not b.any()
    assert w.dtype == b.dtype == np.float64


@pytest.mark.parametrize(
    "kind, sizes, message",
    [
        (Conv, (0, 5), "Conv.filters: expected a whole number of at least 1, got 0"),
        (Conv, (6, 2.5), "Conv.kernel: expected a whole number of at least 1, got 2.5"),
        (Pool, (True,), "Pool.size: expected a whole number of at least 1, got True"),
        (MaxPool, (0,), "MaxPool.size: expected a whole number of at least 1, got 0"),
        (Dense, (-1,), "Dense.outputs: expected a whole number of at least 1, got -1"),
    ],
)
def test_an_impossible_size_is_named(kind, sizes, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        kind(*sizes)


@pytest.mark.parametrize("layer", [Conv(1, 5), Pool(5), AveragePool(5), MaxPool(5)])
@pytest.mark.parametrize("shape", [(6, 4, 24), (6, 24, 4), (4,)], ids=["low", "narrow", "no maps"])
def test_windows_want_maps_into_which_they_fit(layer, shape):
    assert layer.output_shape((6, 5, 24))[1] == 1
    message = rf"^layers: expected maps of at least 5 × 5 for {type(layer).__name__}\(.* got \("
    with pytest.raises(ValueError, match=message):
        layer.output_shape(shape)
