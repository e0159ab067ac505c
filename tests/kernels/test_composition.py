"""A step of any network by any strategy, against the reference; the reference against slopes."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as draw

from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import composed, forward, loss_and_gradients
from cnnlab.network import AveragePool, Conv, Dense, MaxPool, Network, Pool, ReLU, Sigmoid
from tests.kernels.examples import (
    FAST,
    NETWORKS,
    REFERENCE,
    REPORTS,
    batch,
    by_reference,
    parameters,
)
from tests.networks import report_network


def clear_cut(network, x):
    """Whether rounding can change neither which element is the largest nor the side of zero."""
    exact = x.astype(np.float64)
    outputs = [*forward(REFERENCE, parameters(network, np.float64), exact).values(), exact]
    for place in network.places:
        z = outputs[place.sources[0]]
        gap = abs(z)
        if isinstance(place.layer, MaxPool) and (s := place.layer.size) > 1:
            seen, step = (
                np.lib.stride_tricks.sliding_window_view(z, (s, s), (2, 3)),
                place.layer.stride,
            )
            seen = seen[:, :, ::step, ::step]
            gap = np.diff(np.partition(seen.reshape(-1, s * s), -2)[:, -2:])
        elif not isinstance(place.layer, ReLU):
            continue
        if ((0 < gap) & (gap < 2e-6)).any():
            return False
    return True


def clear_batch(network, n):
    """A clear-cut batch, the first of some; None if none of them is."""
    batches = (batch(network, n, seed=seed) for seed in range(n, n + 20))
    return next((result for result in batches if clear_cut(network, result[0])), None)


def agrees(strategy, network, n, step=loss_and_gradients):
    """Compare a strategy's loss and gradients with the reference's; the inputs stay as they are."""
    params, grads = parameters(network, strategy.dtype), network.zeros(strategy.dtype)
    grads.flat[:] = np.nan
    x, labels = clear_batch(network, n)
    kept = x.copy(), labels.copy(), params.flat.copy()
    loss = step(strategy, params, x, labels, grads)
    for now, before in zip((x, labels, params.flat), kept, strict=True):
        assert (now == before).all()
    wanted, expected = by_reference(params, x, labels)
    assert loss == pytest.approx(wanted, rel=1e-5)
    for name, got, right in zip(network.parameter_shapes, grads, expected, strict=True):
        tolerance = 1e-5 * np.sqrt(n) * max(abs(right).max(), 1)
        np.testing.assert_allclose(got, right, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_the_references_gradients_are_slopes_for_every_parameter_group(network):
    x, labels = batch(network, 2, np.float64)
    params, grads = parameters(network, np.float64), network.zeros(np.float64)
    grads.flat[:] = np.nan
    loss_and_gradients(REFERENCE, params, x, labels, grads)
    unused, h = network.zeros(np.float64), 1e-8  # small: no maximum and no ReLU may change sides
    rng = np.random.default_rng(0)
    for name, array, gradient in zip(network.parameter_shapes, params, grads, strict=True):
        size, kept = abs(gradient).max(), array.copy()
        assert size > 1e-4, name
        for _ in range(3):  # directions in which all elements change
            direction, losses = rng.choice([-1, 1], array.shape), []
            for step in (h, -h):
                array[:] = kept + step * direction
                losses.append(loss_and_gradients(REFERENCE, params, x, labels, unused))
            slope = (losses[0] - losses[1]) / (2 * h)
            assert abs(np.sum(gradient * direction) - slope) <= 1e-5 * size, name
        array[:] = kept


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("name", FAST)
def test_every_strategy_has_the_references_loss_and_gradients(name, network):
    batches = 1, 7, 15, 16, 17, 71, 1  # the last forgets what those before it left
    for n in batches if KERNELS[name].fused("loss_and_gradients", network) else (1, 9):
        agrees(KERNELS[name], network, n)


@pytest.mark.parametrize("name", FAST)
def test_the_composed_step_is_that_of_the_fused_one(name):
    for network in REPORTS.values():
        agrees(KERNELS[name], network, 9, composed)


@pytest.mark.parametrize("name", FAST)
@settings(max_examples=15)
@given(draw.data())
def test_every_strategy_has_them_for_any_network_of_the_reports_form(name, data):
    small = {size: draw.integers(1, 5) for size in ("channels", "filters", "kernel", "pool")}
    sizes = data.draw(draw.fixed_dictionaries(small | {"classes": draw.integers(1, 12)}))
    smallest = sizes["kernel"] + sizes["pool"] - 1
    more = data.draw(draw.tuples(draw.integers(0, 12), draw.integers(0, 12)))
    network = report_network(**sizes, height=smallest + more[0], width=smallest + more[1])
    agrees(KERNELS[name], network, data.draw(draw.integers(1, 40)))


@draw.composite
def networks(pick):
    """Any network: up to six layers on maps, then one or two that are fully connected."""
    image = pick(draw.tuples(draw.integers(1, 3), draw.integers(4, 16), draw.integers(4, 16)))
    activations, layers, shape = draw.sampled_from([Sigmoid(), ReLU()]), [], image
    for _ in range(pick(draw.integers(0, 6))):
        size = draw.integers(1, min(4, *shape[1:]))
        steps = draw.none() | draw.integers(1, 4)
        pools = [draw.builds(kind, size, steps) for kind in (Pool, AveragePool, MaxPool)]
        convolution = draw.builds(Conv, draw.integers(1, 4), size)
        layers.append(pick(draw.one_of(convolution, activations, *pools)))
        shape = layers[-1].output_shape(shape)
    if pick(draw.booleans()):
        layers += [Dense(pick(draw.integers(1, 9))), pick(activations)]
    return Network((*layers, Dense(pick(draw.integers(1, 6))), Sigmoid()), image)


@pytest.mark.parametrize("name", FAST)
@settings(max_examples=20)
@given(networks(), draw.integers(1, 20))
def test_every_strategy_has_them_for_any_network(name, network, n):
    assume(clear_batch(network, n) is not None)
    agrees(KERNELS[name], network, n)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_two_strategies_fuse_the_steps_of_every_network(network):
    for name in ("loss_and_gradients", "sgd_steps"):
        fusing = {strategy.name for strategy in KERNELS.values() if strategy.fused(name, network)}
        assert fusing - {"device"} == {"vector", "threads"}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_forward_gives_the_output_of_every_layer_by_its_name(network):
    x, _ = batch(network, 5)
    result = forward(KERNELS["loops"], parameters(network), x)
    shapes = {place.name: (5, *place.shape) for place in network.places}
    assert {name: y.shape for name, y in result.items()} == shapes
    exact = forward(REFERENCE, parameters(network, np.float64), x.astype(np.float64))
    for name, y in result.items():
        np.testing.assert_allclose(y, exact[name], rtol=1e-5, atol=1e-6, err_msg=name)


NET = Network()
X, LABELS = batch(NET, 4)
READ_ONLY = NET.zeros()
READ_ONLY.dense_w.flags.writeable = False


@pytest.mark.parametrize(
    "changed, error, message",
    [
        ({"x": X.astype(np.float64)}, TypeError, "x: expected dtype float32, got float64"),
        ({"x": X[:, :, :, ::-1]}, ValueError, "x: expected a C-contiguous array"),
        ({"x": X[:, :, :27].copy()}, ValueError, r"x: expected shape .*28, 28.* got \(4, 1, 27"),
        ({"x": X[:0]}, ValueError, "N > 0"),
        ({"labels": LABELS[:3]}, ValueError, r"labels: expected shape \(4,\).* got \(3,\)"),
        ({"labels": LABELS.astype(float)}, TypeError, "labels: expected dtype int64"),
        ({"labels": LABELS + 10}, ValueError, r"labels: expected 0..9, got 1\d at position 0"),
        ({"labels": -LABELS - 1}, ValueError, "labels: expected 0..9, got -"),
        ({"params": NET.parameters(0, np.float64)}, TypeError, "params: expected dtype float32"),
        ({"grads": NET.zeros(np.float64)}, ValueError, "grads: expected Parameters like params"),
        (
            {"grads": report_network(classes=9).zeros()},
            ValueError,
            "grads: expected Parameters like params",
        ),
        ({"grads": READ_ONLY}, ValueError, "grads: expected writeable .* got a read-only array"),
        ({"grads": NET.zeros().arrays}, TypeError, "grads: expected Parameters, .* got tuple"),
        ({"params": NET.zeros().arrays}, TypeError, "params: expected Parameters, .* got tuple"),
        ({"x": X.tolist()}, TypeError, "x: expected a NumPy array of float32, got list"),
        ({"x": X[:, 0]}, ValueError, r"x: expected shape .* got \(4, 28, 28\)"),
        ({"labels": LABELS.tolist()}, TypeError, "labels: expected a NumPy array .* got list"),
    ],
)
@pytest.mark.parametrize("name", ["loops", "vector"])
def test_a_wrong_argument_is_named(name, changed, error, message):
    asked = {"params": NET.parameters(), "x": X, "labels": LABELS, "grads": NET.zeros()} | changed
    with pytest.raises(error, match=message):
        loss_and_gradients(KERNELS[name], *asked.values())
    assert not any(array.any() for array in asked["grads"])


def test_gradients_are_not_written_over_the_parameters():
    params = NET.parameters()
    with pytest.raises(ValueError, match=r"grads: expected .*, got params"):
        loss_and_gradients(KERNELS["loops"], params, X, LABELS, params)
    assert (params.flat == NET.parameters().flat).all()
