import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

from cnnlab.kernels import KERNELS, threads
from cnnlab.kernels.composition import forward, loss_and_gradients
from cnnlab.network import Network, report_network
from cnnlab.runtime import thread_pool

REFERENCE = KERNELS["reference"]
FAST = [name for name in KERNELS if name != "reference"]
NETWORKS = [
    Network(),
    report_network(2, 19, 23, filters=3, kernel=3, pool=2, classes=5),
    report_network(1, 12, 15, filters=1, kernel=7, pool=3, classes=1),
    report_network(3, 10, 9, filters=5, kernel=4, pool=1, classes=2),
]


def batch(network, n, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((n, *network.image_shape)).astype(np.float32)
    return x.astype(dtype), rng.integers(0, network.classes, n)


def agrees(strategy, network, n):
    """Compare a strategy's loss and gradients with the reference's, for parameters with biases."""
    params, exact = network.parameters(1), network.parameters(1, np.float64)
    params.flat += np.random.default_rng(2).normal(size=params.flat.size).astype(np.float32) / 10
    exact.flat[:] = params.flat
    grads, expected = network.zeros(), network.zeros(np.float64)
    grads.flat[:] = np.nan
    x, labels = batch(network, n, seed=n)
    kept = x.copy(), labels.copy(), params.flat.copy()
    loss = loss_and_gradients(strategy, params, x, labels, grads)
    for now, before in zip((x, labels, params.flat), kept, strict=True):
        assert (now == before).all()
    wanted = loss_and_gradients(REFERENCE, exact, x.astype(np.float64), labels, expected)
    assert loss == pytest.approx(wanted, rel=1e-5)
    for name, got, right in zip(network.parameter_shapes, grads, expected, strict=True):
        tolerance = 1e-5 * np.sqrt(n) * max(abs(right).max(), 1)
        np.testing.assert_allclose(got, right, rtol=0, atol=tolerance, err_msg=name)


def test_the_networks_shapes_are_those_of_the_report():
    net = Network()
    assert (net.conv_shape, net.pool_shape, net.features) == ((6, 24, 24), (6, 6, 6), 216)
    assert sum(net.multiply_adds.values()) == 189_648
    assert net.parameters().flat.size == 6 * 25 + 6 + 6 * 16 + 6 + 2160 + 10


@pytest.mark.parametrize("network", NETWORKS[1:], ids=str)
def test_the_references_gradients_are_slopes_for_every_parameter_group(network):
    x, labels = batch(network, 3, np.float64)
    params, grads = network.parameters(1, np.float64), network.zeros(np.float64)
    params.flat += np.random.default_rng(2).normal(size=params.flat.size) / 10
    grads.flat[:] = np.nan
    loss_and_gradients(REFERENCE, params, x, labels, grads)
    unused, h = network.zeros(np.float64), 1e-5
    for name, array, gradient in zip(network.parameter_shapes, params, grads, strict=True):
        chosen = list(np.ndindex(array.shape))[:: 1 + array.size // 60]
        slopes = []
        for i in chosen:
            kept, losses = array[i], []
            for array[i] in (kept + h, kept - h):
                losses.append(loss_and_gradients(REFERENCE, params, x, labels, unused))
            array[i] = kept
            slopes.append((losses[0] - losses[1]) / (2 * h))
        found = np.array([gradient[i] for i in chosen])
        assert abs(found - slopes).max() <= 1e-6 * abs(gradient).max(), name


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@pytest.mark.parametrize("name", FAST)
def test_every_strategy_has_the_references_loss_and_gradients(name, network):
    for n in (1, 2, 7, 8, 9, 16, 17, 33, 71, 1):  # the last forgets what those before it left
        agrees(KERNELS[name], network, n)


@pytest.mark.skipif(thread_pool.size() < 2, reason="Numba has room for one thread only")
def test_each_thread_works_on_its_own_part_of_the_batch_in_buffers_of_its_own():
    params, (x, labels) = NETWORKS[1].parameters(), batch(NETWORKS[1], 32)
    with thread_pool.threads(2):
        own, _ = threads.places(params, x)
        own.image[:] = np.nan
        loss_and_gradients(KERNELS["threads"], params, x, labels, NETWORKS[1].zeros())
    for t in range(2):
        np.testing.assert_array_equal(
            np.moveaxis(own.image[t * threads.APART], -1, 0), x[16 * t : 16 * (t + 1)]
        )


@pytest.mark.parametrize("name", FAST)
@settings(max_examples=15, deadline=None)
@given(draw.data())
def test_every_strategy_has_them_for_any_network_and_batch(name, data):
    small = {size: draw.integers(1, 5) for size in ("channels", "filters", "kernel", "pool")}
    sizes = data.draw(draw.fixed_dictionaries(small | {"classes": draw.integers(1, 12)}))
    smallest = sizes["kernel"] + sizes["pool"] - 1
    more = data.draw(draw.tuples(draw.integers(0, 12), draw.integers(0, 12)))
    network = report_network(**sizes, height=smallest + more[0], width=smallest + more[1])
    agrees(KERNELS[name], network, data.draw(draw.integers(1, 40)))


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


def test_a_saturated_network_has_a_finite_loss_and_finite_gradients():
    network = NETWORKS[1]
    for name in FAST:
        params, exact = network.parameters(1), network.parameters(1, np.float64)
        for p in (params, exact):
            p.flat *= 300
        grads, expected = network.zeros(), network.zeros(np.float64)
        for n in (3, 17):
            x, labels = batch(network, n)
            loss = loss_and_gradients(KERNELS[name], params, x, labels, grads)
            loss_and_gradients(REFERENCE, exact, x.astype(np.float64), labels, expected)
            assert 10 < loss < 70 * network.classes * n
            np.testing.assert_allclose(grads.dense_b, expected.dense_b, rtol=1e-3, atol=1e-3)
            assert np.isfinite(grads.flat).all()


def test_forward_gives_the_activations_of_the_three_layers():
    net = Network()
    x, _ = batch(net, 5)
    found = forward(KERNELS["loops"], net.parameters(), x)
    assert [a.shape for a in found] == [(5, 6, 24, 24), (5, 216), (5, 10)]
    exact = forward(REFERENCE, net.parameters(dtype=np.float64), x.astype(np.float64))
    for got, expected in zip(found, exact, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


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


@pytest.mark.parametrize("sizes", [{"filters": 0}, {"kernel": 2.5}, {"height": 7}, {"width": 3}])
def test_an_impossible_network_is_refused(sizes):
    with pytest.raises(ValueError, match=f"{next(iter(sizes))} .*expected"):
        report_network(**sizes)
