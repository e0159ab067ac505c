"""NaN and saturation: a step by any strategy does what the contract says of them."""

import numpy as np
import pytest

from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from tests.kernels.examples import FAST, OTHERS, REPORTS, batch, by_reference, parameters


@pytest.mark.parametrize("n", [3, 17])
@pytest.mark.parametrize("network", ["lenet5", "average", "two channels"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_pixel_that_is_nan_makes_the_loss_and_every_gradient_nan(name, network, n):
    strategy, network = KERNELS[name], (OTHERS | REPORTS)[network]
    params, grads = parameters(network, strategy.dtype), network.zeros(strategy.dtype)
    x, labels = batch(network, n, strategy.dtype)
    x[1, 0, 5, 6] = np.nan
    with np.errstate(invalid="ignore"):
        assert np.isnan(loss_and_gradients(strategy, params, x, labels, grads))
    _, exact = by_reference(params, x, labels)
    assert (np.isnan(grads.flat) == np.isnan(exact.flat)).all() and np.isnan(exact.flat).any()


def test_a_saturated_network_has_a_finite_loss_and_finite_gradients():
    both = REPORTS["two channels"], OTHERS["average"]
    for name, network in [(name, network) for name in FAST for network in both]:
        params, grads = network.parameters(1), network.zeros()
        params.flat *= 300
        for n in (3, 17):
            x, labels = batch(network, n)
            loss = loss_and_gradients(KERNELS[name], params, x, labels, grads)
            right, expected = by_reference(params, x, labels)
            assert loss == pytest.approx(right, rel=1e-3) and 10 < loss < 17 * network.classes * n
            np.testing.assert_allclose(grads.dense_b, expected.dense_b, rtol=1e-3, atol=1e-3)
            assert np.isfinite(grads.flat).all()
