"""The network as data: what follows from its layers, and what is refused. Nothing is computed."""

import json

import numpy as np
import pytest

from cnnlab.network import (
    EIGHT,
    LENET5,
    REPORT_FORM,
    AveragePool,
    Conv,
    Dense,
    MaxPool,
    Network,
    Parameters,
    Pool,
    ReLU,
    Sigmoid,
    report_network,
)

END = Dense(4), Sigmoid()
MIXED = Network(
    (MaxPool(2), Conv(3, 2), ReLU(), AveragePool(2), Conv(5, 3), Pool(2), Sigmoid(), *END),
    (2, 19, 23),
)


def test_the_default_is_the_network_of_the_report():
    net = Network()
    assert net == report_network() and net.form == REPORT_FORM
    shapes = {place.name: place.shape for place in net.places if not place.layer.elementwise}
    assert shapes == {"conv": (6, 24, 24), "pool": (6, 6, 6), "dense": (10,)}
    assert net["dense"].input_shape == (6, 6, 6) and net.classes == 10
    assert sum(net.multiply_adds.values()) == 189_648
    assert net.parameters().flat.size == 6 * 25 + 6 + 6 * 16 + 6 + 2160 + 10


def test_lenet5_has_two_convolutions_the_second_over_six_channels():
    shapes = [place.shape for place in LENET5.places if not place.layer.elementwise]
    maps = [(6, 24, 24), (6, 12, 12), (16, 8, 8), (16, 4, 4)]
    assert shapes == [*maps, (120,), (84,), (10,)]
    assert LENET5.parameter_shapes["conv2_w"] == (16, 6, 5, 5)
    assert LENET5.parameters().flat.size == 156 + 2416 + 30_840 + 10_164 + 850


def test_the_network_of_eight_layers_that_learn_makes_four_stages_alike():
    learned = [p for p in EIGHT.places if p.layer.multiply_adds(p.input_shape)]
    work = [place.layer.multiply_adds(place.input_shape) for place in learned]
    assert len(EIGHT.parameter_shapes) == 2 * 8 == 2 * len(learned)
    stages = work[0], work[1], work[2], sum(work[3:])
    assert max(stages) < 1.25 * min(stages)


def test_layers_are_numbered_where_several_have_one_operation():
    names = "max_pool conv1 conv1_relu pool1 conv2 pool2 pool2_sigmoid dense dense_sigmoid"
    assert [place.name for place in MIXED.places] == names.split()
    maps = [(2, 9, 11), (3, 8, 10), (3, 8, 10), (3, 4, 5), (5, 2, 3), (5, 1, 1), (5, 1, 1)]
    assert [place.shape for place in MIXED.places] == [*maps, (4,), (4,)]
    assert MIXED["conv2"].layer == Conv(5, 3) and MIXED["pool1"].layer == AveragePool(2)
    with pytest.raises(KeyError, match=r"layer: expected one of max_pool, conv1, .* got 'conv'"):
        MIXED["conv"]


def test_only_layers_that_learn_have_parameters():
    names = ["conv1_w", "conv2_w", "pool2_w", "dense_w"]
    assert [name for name in MIXED.parameter_shapes if name.endswith("_w")] == names
    assert MIXED.places[MIXED.first_learned].name == "conv1"
    params = MIXED.parameters(dtype=np.float64)
    assert params.at(MIXED["conv2"])[0] is params.conv2_w
    assert params.at(MIXED["conv1_relu"]) == params.at(MIXED["max_pool"]) == ()
    w, b = params.at(MIXED["pool1"])
    assert (w == 1 / 4).all() and w.shape == (3, 2, 2) and w.dtype == np.float64
    assert (b == 0).all() and b.shape == (3,)


def test_multiply_adds_are_those_of_the_loops_without_the_gradient_that_nobody_needs():
    layers = {
        "conv1": 3 * 8 * 10 * 2 * 2 * 2,  # results, channels, and a kernel of 2 × 2
        "pool1": 3 * 4 * 5 * 2 * 2,
        "conv2": 5 * 2 * 3 * 3 * 3 * 3,
        "pool2": 5 * 1 * 1 * 2 * 2,
        "dense": 4 * 5,
    }
    learned = {name: n for name, n in layers.items() if name != "pool1"}
    above = {name: n for name, n in layers.items() if name != "conv1"}
    assert MIXED.multiply_adds == (
        {f"{name}_forward": n for name, n in layers.items()}
        | {f"{name}_backward_weights": n for name, n in learned.items()}
        | {f"{name}_backward_input": n for name, n in above.items()}
    )


def test_memory_counts_bytes():
    result, n = MIXED.memory(7), MIXED.parameters().flat.nbytes
    activations = sum(np.prod(place.shape) for place in MIXED.places)
    assert result == {"parameters": n, "gradients": n, "activations": 7 * 4 * activations}
    assert MIXED.memory(7, 8) == {name: 2 * size for name, size in result.items()}


def test_parameters_are_views_of_one_buffer_and_depend_on_the_seed_alone():
    net = Network()
    params = net.parameters(3)
    params.flat[:] = np.arange(params.flat.size)
    assert params.conv_w[0, 0, 0, 1] == 1 and params.dense_b[-1] == params.flat.size - 1
    assert [a.shape for a in params] == list(net.parameter_shapes.values())
    assert (net.parameters(3).flat == net.parameters(3).flat).all()
    assert (net.parameters(3).flat != net.parameters(4).flat).any()
    single, double = net.parameters(3).flat, net.parameters(3, np.float64).flat
    np.testing.assert_allclose(single, double, rtol=1e-7)
    other = params.copy()
    other.flat[:] = 0
    assert params.flat.any()
    buffer = np.zeros_like(params.flat)
    Parameters(net, flat=buffer).conv_w[:] = 1
    assert buffer.sum() == 6 * 25


EACH = pytest.mark.parametrize(
    "network", [Network(), LENET5, MIXED], ids=["report", "lenet5", "mixed"]
)


@EACH
def test_weights_begin_within_one_over_the_root_of_the_fan_in_and_biases_at_zero(network):
    params = network.parameters(dtype=np.float64)
    for name, array in zip(network.parameter_shapes, params, strict=True):
        most = 1 / np.sqrt(np.prod(array.shape[1:])) if name.endswith("_w") else 0
        assert 0.7 * most <= abs(array).max() <= most


@EACH
def test_a_description_is_plain_data_from_which_the_network_comes_back(network):
    text = json.dumps(network.description())
    again = Network.from_description(json.loads(text))
    assert again == network and hash(again) == hash(network)
    assert again != Network((*network.layers[:-2], Dense(3), Sigmoid()), network.image_shape)


def test_the_images_have_a_size():
    message = "^image_shape: channels: expected a whole number of at least 1, got 0$"
    with pytest.raises(ValueError, match=message):
        report_network(channels=0)


@pytest.mark.parametrize(
    "layers", [(), END[:1], (Dense(3), ReLU()), (*END, Sigmoid()), (Conv(3, 3), Sigmoid())]
)
def test_the_last_layers_are_dense_and_sigmoid(layers):
    with pytest.raises(ValueError, match=r"^layers: expected Dense and Sigmoid at the end, got "):
        Network(layers)


# --- layers

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
    assert layer.stride == ((4,) if "Pool" in type(layer).__name__ else ())  # told a kernel


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
