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
    assert MIXED["conv2"].layer == Conv(5, 3) and MIXED["pool1"].layer == AveragePool(2)
    with pytest.raises(KeyError, match=r"layer: expected one of max_pool, conv1, .* got 'conv'"):
        MIXED["conv"]


def test_what_one_layer_gives_the_next_one_takes():
    shapes = [place.shape for place in MIXED.places]
    for place, before in zip(MIXED.places, [MIXED.image_shape, *shapes], strict=False):
        assert place.input_shape == before
    maps = [(2, 9, 11), (3, 8, 10), (3, 8, 10), (3, 4, 5), (5, 2, 3), (5, 1, 1), (5, 1, 1)]
    assert shapes == [*maps, (4,), (4,)]


def test_only_layers_that_learn_have_parameters():
    names = [name for layer in ("conv1", "conv2", "pool2", "dense") for name in (f"{layer}_w",)]
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


@pytest.mark.parametrize("network", [Network(), LENET5, MIXED], ids=["report", "lenet5", "mixed"])
def test_weights_begin_within_one_over_the_root_of_the_fan_in_and_biases_at_zero(network):
    params = network.parameters(dtype=np.float64)
    for name, array in zip(network.parameter_shapes, params, strict=True):
        most = 1 / np.sqrt(np.prod(array.shape[1:])) if name.endswith("_w") else 0
        assert 0.7 * most <= abs(array).max() <= most


@pytest.mark.parametrize("network", [Network(), LENET5, MIXED], ids=["report", "lenet5", "mixed"])
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
    "layers",
    [
        (),
        (Dense(3),),
        (Dense(3), ReLU()),
        (*END, Sigmoid()),
        (Conv(3, 3), Sigmoid()),
        (*END, Pool(1)),
    ],
)
def test_the_last_layers_are_dense_and_sigmoid(layers):
    with pytest.raises(ValueError, match=r"^layers: expected Dense and Sigmoid at the end, got "):
        Network(layers)
