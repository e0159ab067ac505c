import warnings

import numpy as np
import pytest

from cnnlab import training
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.kernels.variants import poolings
from cnnlab.network import report_network


def windows(x, p, q, s):
    """The windows of x (N,C,H,W) as (N,C,P,Q,S*S)."""
    n, c = x.shape[:2]
    cut = x[:, :, : p * s, : q * s].reshape(n, c, p, s, q, s)
    return cut.transpose(0, 1, 2, 4, 3, 5).reshape(n, c, p, q, s * s)


@pytest.mark.parametrize("h, w, s", [(8, 12, 4), (11, 7, 3), (11, 9, 4), (5, 5, 1)])
def test_max_pooling_finds_the_maxima_and_hands_each_gradient_back(h, w, s):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 9, (2, 3, h, w)).astype(np.float32)  # with many ties
    p, q = h // s, w // s
    z, where = np.full((2, 3, p, q), np.nan, np.float32), np.full((2, 3, p, q), -1)
    poolings.max_pool_forward(x, z, where, s)
    assert (z == windows(x, p, q, s).max(-1)).all()
    assert (where == windows(x, p, q, s).argmax(-1)).all()

    dz, dx = rng.normal(size=z.shape).astype(np.float32), np.full_like(x, np.nan)
    poolings.max_pool_backward(dz, where, dx, s)
    expected = np.zeros((2, 3, p, q, s * s), np.float32)
    np.put_along_axis(expected, where[..., None], dz[..., None], -1)
    assert (windows(dx, p, q, s) == expected).all()
    assert np.count_nonzero(dx) == dz.size


def test_average_pooling_takes_means_and_hands_back_equal_shares():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 9, 13)).astype(np.float32)
    z, dx = np.full((2, 3, 2, 3), np.nan, np.float32), np.full_like(x, np.nan)
    poolings.average_pool_forward(x, z, None, 4)
    np.testing.assert_allclose(z, windows(x, 2, 3, 4).mean(-1), atol=1e-6)
    poolings.average_pool_backward(z, None, dx, 4)
    np.testing.assert_allclose(windows(dx, 2, 3, 4), z[..., None].repeat(16, -1) / 16)
    assert dx.sum() == pytest.approx(z.sum(), rel=1e-5)


@pytest.mark.parametrize("kind", poolings.POOLINGS)
def test_the_whole_steps_gradients_are_slopes(kind):
    strategy = poolings.strategy(kind)
    net = report_network(1, 12, 12, filters=2, kernel=3, pool=5, classes=3)
    rng = np.random.default_rng(1)
    x, labels = rng.random((4, 1, 12, 12)).astype(np.float32), rng.integers(0, 3, 4)
    params, grads, unused = net.parameters(2), net.zeros(), net.zeros()
    grads.flat[:] = np.nan
    loss_and_gradients(strategy, params, x, labels, grads)
    assert not grads.pool_w.any() and not grads.pool_b.any()
    direction = rng.normal(size=grads.flat.size).astype(np.float32)
    step, losses = 1e-3 * direction, []
    for sign in (1, -1):
        moved = params.copy()
        moved.flat += sign * step
        losses.append(loss_and_gradients(strategy, moved, x, labels, unused))
    assert (losses[0] - losses[1]) / 2 == pytest.approx(float(grads.flat @ step), rel=0.02)


@pytest.mark.parametrize("kind", poolings.POOLINGS)
def test_the_network_learns_with_it(kind):
    data = load("digits", 600, 100)
    run = training.train(data, poolings.strategy(kind), epochs=12, batch=8)
    assert run.history[-1]["test_accuracy"] > 0.6
    assert not {f"{kind} pooling", "poolings"} & set(KERNELS)


def test_activations_of_0_and_1_pass_without_a_warning():
    strategy, z = poolings.strategy("max"), np.empty((1, 2, 1, 1), np.float32)
    x = np.zeros((1, 2, 4, 4), np.float32)
    x[0, 1] = 1
    w, b = np.ones((2, 4, 4), np.float32), np.zeros(2, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strategy.kernel("pool_forward")(x, w, b, z, 4)
        y = np.empty_like(z)
        strategy.kernel("sigmoid")(z, y)
    assert np.allclose(y.ravel(), [0, 1], rtol=0, atol=1e-7)


def test_an_unknown_pooling_is_named():
    with pytest.raises(ValueError, match=r"^kind: expected one of max, average, got 'min'$"):
        poolings.strategy("min")
