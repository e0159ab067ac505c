import numpy as np
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.network import Network, forward, loss_and_gradients

REFERENCE = KERNELS["reference"]
FAST = [name for name in KERNELS if name != "reference"]
NETWORKS = [
    Network(),
    Network(2, 19, 23, filters=3, kernel=3, pool=2, classes=5),
    Network(1, 12, 15, filters=1, kernel=7, pool=3, classes=1),
    Network(3, 10, 9, filters=5, kernel=4, pool=1, classes=2),
]


def batch(network, n, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, *network.image_shape)).astype(np.float32)
    return x.astype(dtype), rng.integers(0, network.classes, n)


def test_the_networks_shapes_are_those_of_the_report():
    net = Network()
    assert (net.conv_shape, net.pool_shape, net.features) == ((6, 24, 24), (6, 6, 6), 216)
    assert sum(net.multiply_adds.values()) == 189_648
    assert net.parameters().flat.size == 6 * 25 + 6 + 6 * 16 + 6 + 2160 + 10


@pytest.mark.parametrize("network", NETWORKS[1:3], ids=str)
def test_the_references_gradients_are_slopes_for_every_parameter_group(network):
    x, labels = batch(network, 3, np.float64)
    params, grads = network.parameters(1, np.float64), network.zeros(np.float64)
    params.flat += np.random.default_rng(2).normal(size=params.flat.size) / 10
    loss_and_gradients(REFERENCE, params, x, labels, grads)
    gradients, unused = grads.copy(), network.zeros(np.float64)
    for array, gradient in zip(params, gradients, strict=True):
        for i in list(np.ndindex(array.shape))[::7]:
            kept, h = array[i], 1e-5
            array[i] = kept + h
            above = loss_and_gradients(REFERENCE, params, x, labels, unused)
            array[i] = kept - h
            slope = (above - loss_and_gradients(REFERENCE, params, x, labels, unused)) / (2 * h)
            array[i] = kept
            assert gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@pytest.mark.parametrize("name", FAST)
def test_every_strategy_has_the_references_loss_and_gradients(name, network):
    params, exact = network.parameters(1), network.parameters(1, np.float64)
    grads, expected = network.zeros(), network.zeros(np.float64)
    for n in (1, 2, 7, 8, 9, 16, 17, 33, 71):
        x, labels = batch(network, n, seed=n)
        grads.flat[:] = np.nan
        loss = loss_and_gradients(KERNELS[name], params, x, labels, grads)
        wanted = loss_and_gradients(REFERENCE, exact, x.astype(np.float64), labels, expected)
        assert loss == pytest.approx(wanted, rel=1e-5)
        for got, right in zip(grads, expected, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=2e-5 * abs(right).max())


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


def test_forward_gives_the_activations_of_the_three_layers():
    net = Network()
    x, _ = batch(net, 5)
    found = forward(KERNELS["loops"], net.parameters(), x)
    assert [a.shape for a in found] == [(5, 6, 24, 24), (5, 216), (5, 10)]
    assert all((a > 0).all() and (a < 1).all() for a in found)


NET = Network()
X, LABELS = batch(NET, 4)


@pytest.mark.parametrize(
    "changed, error, message",
    [
        ({"x": X.astype(np.float64)}, TypeError, "x should have dtype float32, got float64"),
        ({"x": X[:, :, :, ::-1]}, ValueError, "x should be C-contiguous"),
        ({"x": X[:, :, :27].copy()}, ValueError, r"x should have shape .*28, 28.* got \(4, 1, 27"),
        ({"x": X[:0]}, ValueError, "N > 0"),
        ({"labels": LABELS[:3]}, ValueError, r"labels should have shape \(4,\).* got \(3,\)"),
        ({"labels": LABELS.astype(float)}, TypeError, "labels should have dtype int64"),
        ({"labels": LABELS + 10}, ValueError, r"labels should lie in 0..9, got 1\d at position 0"),
        ({"labels": -LABELS - 1}, ValueError, "labels should lie in 0..9, got -"),
        ({"params": NET.parameters(0, np.float64)}, TypeError, "params should have dtype float32"),
        ({"grads": NET.zeros(np.float64)}, ValueError, "grads should be like params"),
        ({"grads": Network(classes=9).zeros()}, ValueError, "grads should be like params"),
    ],
)
@pytest.mark.parametrize("name", ["loops", "vector"])
def test_a_wrong_argument_is_named(name, changed, error, message):
    given = {"params": NET.parameters(), "x": X, "labels": LABELS, "grads": NET.zeros()} | changed
    with pytest.raises(error, match=message):
        loss_and_gradients(KERNELS[name], *given.values())


@pytest.mark.parametrize("sizes", [{"filters": 0}, {"kernel": 2.5}, {"height": 7}, {"width": 3}])
def test_an_impossible_network_is_refused(sizes):
    with pytest.raises(ValueError, match=f"{next(iter(sizes))} .*should be"):
        Network(**sizes)
