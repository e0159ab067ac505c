"""The network as data: what follows from its layers, and what is refused. Nothing is computed."""

import json

import numpy as np
import pytest

from cnnlab.network import (  # isort: skip
    EIGHT, INCEPTION, NETWORKS, REPORT_FORM, RESIDUAL, Add, AveragePool, Concat, Conv, Dense,
    MaxPool, Network, Pad, Parameters, Pool, ReLU, Sigmoid,
)  # fmt: skip
from tests.networks import MIXED, report_network

END = Dense(4), Sigmoid()


def test_the_default_is_the_network_of_the_report():
    net = Network()
    assert net == report_network() and net.form == REPORT_FORM
    shapes = {place.name: place.shape for place in net.places if not place.layer.elementwise}
    assert shapes == {"conv": (6, 24, 24), "pool": (6, 6, 6), "dense": (10,)}
    assert net["dense"].input_shape == (6, 6, 6) and net.classes == 10
    assert sum(net.multiply_adds.values()) == 189_648
    assert net.parameters().flat.size == 6 * 25 + 6 + 6 * 16 + 6 + 2160 + 10


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


EACH = pytest.mark.parametrize("network", [*NETWORKS.values(), MIXED], ids=[*NETWORKS, "mixed"])


@EACH
def test_weights_begin_as_what_follows_them_wants_and_biases_at_zero(network):
    """LeCun's bound is 1/√(fan in), He's √6/√(fan in), so that the variance is 2/(fan in)."""
    params = network.parameters(dtype=np.float64)
    for i, place in enumerate(network.places):
        if place.layer.parameter_shapes(place.input_shape):
            w, b = params.at(place)
            relu = next(p.layer for p in network.places[i:] if p.layer.elementwise) == ReLU()
            most = np.sqrt((6 if relu else 1) / np.prod(w.shape[1:]))
            assert 0.7 * most <= abs(w).max() <= most
            assert not b.any() or (place.name == network.places[-2].name)
    assert relu is False  # the last layer is a sigmoid's, and begins with the share of a class
    if "ReLU" in network.form:
        np.testing.assert_allclose(1 / (1 + np.exp(-b)), 1 / network.classes)


@EACH
def test_a_description_is_plain_data_from_which_the_network_comes_back(network):
    text = json.dumps(network.description())
    again = Network.from_description(json.loads(text))
    assert again == network and hash(again) == hash(network)
    assert again.usual_rate == network.usual_rate
    assert again != Network((*network.layers[:-2], Dense(3), Sigmoid()), network.image_shape)


def test_a_description_of_old_knows_sizes_alone():
    layers = [["Conv", {"filters": 6, "kernel": 5}], ["ReLU", {}], ["MaxPool", {"size": 2}]]
    layers += [["Dense", {"outputs": 10}], ["Sigmoid", {}]]
    old = Network.from_description({"image_shape": [1, 28, 28], "layers": layers})
    assert old == Network((Conv(6, 5), ReLU(), MaxPool(2), *(Dense(10), Sigmoid())))


def test_a_network_has_a_rate_of_its_own_or_one_that_its_layers_bear():
    assert Network().usual_rate == 0.4
    own = Network((Dense(3), ReLU(), *END), rate=0.125)
    assert own.usual_rate == 0.125 and own == Network((Dense(3), ReLU(), *END))
    assert 0 < Network((Dense(3), ReLU(), *END)).usual_rate < 0.4


# --- graphs

GRAPH = Network(
    (
        *(("first", MaxPool(2)), Conv(3, 3), Sigmoid()),
        *(("side", Conv(2, 1), "first"), Pad(1), ("window", MaxPool(5, 1))),
        *(
            ("both", Concat(), "conv1_sigmoid", "window"),
            Conv(5, 1),
            ("sum", Add(), "conv2", "both"),
        ),
        *END,
    ),
    (2, 12, 14),
)


def test_a_layer_takes_what_its_sources_give():
    sources = {place.name: place.sources for place in GRAPH.places}
    names = "first conv1 conv1_sigmoid side pad window both conv2 sum dense dense_sigmoid"
    assert list(sources) == names.split()
    assert sources["first"] == (-1,) and sources["side"] == (0,) and sources["pad"] == (3,)
    assert sources["both"] == (2, 5) and sources["sum"] == (7, 6)
    shapes = [GRAPH[name].shape for name in ("side", "pad", "window", "both", "sum")]
    assert shapes == [(2, 6, 7), (2, 8, 9), (2, 4, 5), (5, 4, 5), (5, 4, 5)]
    assert GRAPH["both"].input_shape == (3, 4, 5)


def test_only_what_depends_on_parameters_needs_a_gradient():
    assert GRAPH.learning == [False, *[True] * 10, False] and GRAPH.first_learned == 1
    backward = {name for name in GRAPH.multiply_adds if name.endswith("input")}
    assert backward == {"conv2_backward_input", "dense_backward_input"}


def test_a_form_tells_sources_and_strides():
    assert GRAPH.form[3:7] == ("Conv(0,)", "Pad", "MaxPool by 1", "Concat(2, 5)")
    layers = (*Network().layers[:2], Pool(4, 2), Sigmoid(), Dense(10), Sigmoid())
    assert Network(layers).form != REPORT_FORM
    layers = Conv(6, 5), Sigmoid(), Pool(4), ("again", Sigmoid(), "pool"), Dense(10), Sigmoid()
    assert Network(layers).form == REPORT_FORM and Network(layers) != Network()


def test_inception_and_residual_are_graphs_and_the_others_sequences():
    for name, network in NETWORKS.items():
        if network in (INCEPTION, RESIDUAL):
            message = f"^network: expected layers in sequence, .* got {name}, whose [a-z_1]+ has"
            with pytest.raises(ValueError, match=message):
                network.check_sequence()
        else:
            network.check_sequence()
    with pytest.raises(ValueError, match="got a graph, whose side has other sources"):
        GRAPH.check_sequence()
    assert INCEPTION["block"].shape == (32, 12, 12) and RESIDUAL["sum2"].shape == (8, 12, 12)


@pytest.mark.parametrize(
    "layers, message",
    [
        ([("a", Sigmoid(), "b")], "layers: a source of .*: expected one of image, got 'b'"),
        (
            [("a", Sigmoid(), "image", "image")],
            r"expected one source of Sigmoid\(\), got image, im",
        ),
        ([("a b", Sigmoid())], r"expected an identifier for Sigmoid\(\) .*, got 'a b'"),
        ([("image", Sigmoid())], r"that no other layer has, got 'image'"),
        ([("a", Sigmoid()), ("a", Sigmoid())], r"that no other layer has, got 'a'"),
        ([ReLU(), ("b", ReLU(), "image")], "layers: expected each output to be taken, not so relu"),
        ([("a", Conv(2, 1)), ("b", Add(), "a", "image")], r"expected inputs that fit .* Add\(\)"),
        ([("a", Pad(1)), ("b", Concat(), "a", "image")], r"expected inputs that fit .* Concat\(\)"),
        ([Dense(3), Pad(1)], r"layers: expected maps of at least 1 × 1 for Pad\(width=1\), got"),
    ],
)
def test_an_impossible_graph_is_refused(layers, message):
    with pytest.raises(ValueError, match=message):
        Network((*layers, *END), (3, 8, 8))


def test_what_moves_data_moves_it_back():
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 2, 4, 5))
    y, back = np.full((2, 3, 8, 9), np.nan), [np.empty_like(x)]
    Pad(2).move([x], y)
    assert (y[:, :, 2:-2, 2:-2] == x).all() and y.sum() == pytest.approx(x.sum())
    Pad(2).move_back([x], y, back)
    assert (back[0] == x).all()
    y, back = np.empty((2, 5, 4, 5)), [np.empty_like(x), np.empty_like(other)]
    Concat().move([x, other], y)
    Concat().move_back([x, other], y, back)
    assert (back[0] == x).all() and (back[1] == other).all()
    Concat().move_back([x, other], y, [None, back[0][:, :2]])
    assert (back[0][:, :2] == other).all()
    y = np.empty_like(x)
    Add().move([x, x, x], y)
    Add().move_back([x] * 3, y, [None, back[0], None])
    assert (back[0] == y).all() and np.allclose(y, 3 * x)


@pytest.mark.parametrize("size, stride", [(3, 1), (3, 2), (2, 3), (4, 4)])
def test_windows_are_laid_apart_and_their_gradients_are_added(size, stride):
    x, layer = np.arange(2 * 3 * 9 * 10.0).reshape(2, 3, 9, 10), MaxPool(size, stride)
    apart, dx = layer.apart(x), np.full_like(x, np.nan)
    _, rows, columns = layer.output_shape(x.shape[1:])
    times = np.zeros((9, 10))
    for p in range(rows):
        for q in range(columns):
            where = np.s_[p * stride : p * stride + size, q * stride : q * stride + size]
            own = np.s_[..., p * size : (p + 1) * size, q * size : (q + 1) * size]
            assert (apart[own] == x[(..., *where)]).all()
            times[where] += 1
    if stride != size:
        layer.together(apart, dx)
        assert (dx == times * x).all()
    else:
        assert apart is x


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
        (MaxPool(4, 2), (3, 3, 4), {}, 0),
        (AveragePool(2, 3), (3, 3, 4), {}, 3 * 3 * 4 * 2 * 2),
        (Pad(2), (3, 13, 15), {}, 0),
    ],
)
def test_shapes_and_work_follow_from_the_input(layer, output, parameters, multiply_adds):
    assert layer.output_shape(MAPS) == output
    assert layer.parameter_shapes(MAPS) == parameters
    assert layer.multiply_adds(MAPS) == multiply_adds
    windows = {AveragePool: "stride", Pool: "stride", MaxPool: "size"}.get(type(layer))
    assert layer.arguments == ((getattr(layer, windows),) if windows else ())  # told a kernel


@pytest.mark.parametrize(
    "kind, sizes, message",
    [
        (Conv, (0, 5), "Conv.filters: expected a whole number of at least 1, got 0"),
        (Conv, (6, 2.5), "Conv.kernel: expected a whole number of at least 1, got 2.5"),
        (Pool, (True,), "Pool.size: expected a whole number of at least 1, got True"),
        (MaxPool, (0,), "MaxPool.size: expected a whole number of at least 1, got 0"),
        (MaxPool, (2, 0), "MaxPool.stride: expected a whole number of at least 1, got 0"),
        (Pad, (0,), "Pad.width: expected a whole number of at least 1, got 0"),
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
