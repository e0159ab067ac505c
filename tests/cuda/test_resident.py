import functools

import numpy as np
import pytest

from cnnlab.cuda.step import FusedStep, Layerwise
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from tests.cuda.examples import NET, N, digits, trained

FUSED = functools.partial(Layerwise, fused=True)
BOTH = pytest.mark.parametrize("kind", [Layerwise, FUSED, FusedStep])


@BOTH
def test_after_the_last_image_comes_the_first(kind):
    step = kind(NET.parameters(seed=1), *digits(), batch=4, rate=0.5)
    order = np.arange(N)[::-1]  # not 0 first, which may also lie beyond the end of an array
    step.start(order)
    for _ in range(4):
        step()
    flat, _ = trained(np.resize(order, 16), 4, 0.5, 4)
    assert np.allclose(step.parameters().flat, flat, rtol=0, atol=2e-6)


@BOTH
def test_an_order_may_be_a_part_of_the_images_and_begins_again(kind):
    step = kind(NET.parameters(seed=1), *digits(), batch=2, rate=0.5)
    order = np.array([7, 3, 3, 9])
    step.start(order)
    step.graph(2)()
    step()
    step.start(order)
    step()
    flat, loss = trained(np.concatenate([order, order[:2], order[:2]]), 2, 0.5, 4)
    assert np.allclose(step.parameters().flat, flat, rtol=0, atol=2e-6)
    assert step.loss() == pytest.approx(loss, rel=1e-5)


@BOTH
def test_the_parameters_given_are_not_changed(kind):
    params = NET.parameters(seed=1)
    before = params.flat.copy()
    step = kind(params, *digits(), batch=2)
    step()
    assert np.array_equal(params.flat, before)
    assert not np.array_equal(step.parameters().flat, before)


@BOTH
def test_bad_arguments_are_named(kind):
    with pytest.raises(ValueError, match="batch: expected 1 to 11 images, got 12"):
        kind(NET.parameters(seed=1), *digits(), batch=12)
    step = kind(NET.parameters(seed=1), *digits(), batch=2)
    for order in ([0] * (N + 1), [0, N], [-1], [], [0.5], [[0]]):
        with pytest.raises(
            ValueError, match=r"order: expected 1 to 11 numbers of images 0\.\.10, got \["
        ):
            step.start(order)


@BOTH
def test_a_saturated_loss_is_the_references_and_that_of_nan_is_nan(kind):
    (images, labels), params = digits(), NET.parameters(seed=1)
    exact = NET.parameters(seed=1, dtype=np.float64)
    for each in (params, exact):
        each.flat *= 3000
    x, grads = images.astype(np.float64), NET.zeros(np.float64)
    whole = loss_and_gradients(KERNELS["reference"], exact, x, labels, grads)
    assert whole > 100  # so there is much that is saturated and wrong
    step = kind(params, images, labels, batch=N)
    step()
    assert step.loss() * N == pytest.approx(whole, rel=1e-4)
    images[1, 0, 5, 6] = np.nan
    step = kind(NET.parameters(seed=1), images, labels, batch=N)
    step()
    assert np.isnan(step.loss()) and np.isnan(step.parameters().dense_w).all()
