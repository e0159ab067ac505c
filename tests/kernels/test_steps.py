"""Fused steps: the programme of a network, memory that is made once, and the loss's logarithms."""

import sys

import numpy as np
import pytest

from cnnlab.kernels import KERNELS, steps
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.kernels.programme import programme
from cnnlab.network import Conv, Dense, MaxPool, Network, ReLU, Sigmoid
from cnnlab.training.optimizers import Sgd
from tests.kernels.examples import NETWORKS, batch, by_reference, parameters

if sys.platform != "win32":
    import resource


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not count them")
@pytest.mark.parametrize("n", [1, 32])
@pytest.mark.parametrize("name", ["report", "lenet5", "eight"])
def test_a_step_allocates_nothing(name, n):
    """Memory fresh from the operating system would cost a page fault for every 4 KiB of it."""
    network, strategy = NETWORKS[name], KERNELS["vector"]
    params, grads, (x, labels) = parameters(network), network.zeros(), batch(network, n)
    sgd, chosen = Sgd(0.01), np.arange(n)

    def several():
        steps.sgd_steps(params, grads, x, labels, np.tile(chosen, 10), n, 0.01)
        for _ in range(10):
            strategy.fused("loss_and_gradients", network)(params, x, labels, grads, chosen)
            sgd.update(params, grads, n)

    several()
    several()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    several()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before <= 10


@pytest.mark.parametrize("name", NETWORKS)
def test_layers_have_arrays_of_their_own(name):
    """But for an elementwise layer, which is done in place; a join has a row for each input."""
    plan, network = programme(NETWORKS[name]), NETWORKS[name]
    first = {int(row[name]) for row in plan.layers for name in ("y", "dy") if row[name] >= 0}
    joins = sum(len(place.sources) - 1 for place in network.places)
    images = len(plan.layers) - joins, sum(row["dy"] < 0 for row in plan.layers)
    assert len(first) == 2 * images[0] - images[1] and max(first) < plan.size
    assert all(start % 16 == 0 for start in first)


@pytest.mark.parametrize("classes", [1, 31, 32, 33, 100])
def test_the_loss_of_many_classes_is_the_references(classes):
    network = Network((Dense(classes), Sigmoid()), (1, 2, 3))
    params = parameters(network)
    params.flat *= 5
    x, labels = batch(network, 19)
    loss = loss_and_gradients(KERNELS["vector"], params, x, labels, network.zeros())
    assert loss == pytest.approx(by_reference(params, x, labels)[0], rel=1e-5)


@pytest.mark.parametrize("strategy", ["vector", "threads"])
@pytest.mark.parametrize("n", [1, 3, 5, 16, 19])
def test_infinite_weights_give_nan_only_where_the_reference_has_it(n, strategy):
    """Lanes without an image repeat one; zero times infinity would be NaN."""
    network = Network((Conv(3, 3), ReLU(), Dense(4), ReLU(), Dense(3), Sigmoid()), (2, 7, 6))
    grads, (x, labels) = network.zeros(), batch(network, n)
    for seed in range(12):
        rng, params = np.random.default_rng(seed), parameters(network)
        weights = params.flat if seed % 2 else params.dense2_w.reshape(-1)
        weights[rng.integers(weights.size)] = rng.choice([np.inf, -np.inf])
        _, right = by_reference(params, x, labels)
        loss_and_gradients(KERNELS[strategy], params, x, labels, grads)
        assert not (np.isnan(grads.flat) & ~np.isnan(right.flat)).any(), seed


def test_the_same_images_give_the_same_bits():
    network = NETWORKS["average"]
    params, (x, labels) = parameters(network), batch(network, 37)
    result = []
    for _ in range(2):
        grads = network.zeros()
        loss = loss_and_gradients(KERNELS["vector"], params, x, labels, grads)
        result.append((loss, grads.flat.tobytes()))
    assert result[0] == result[1]


@pytest.mark.parametrize("activation", [ReLU(), Sigmoid()])
def test_the_largest_number_of_a_window_is_found_again_below_an_activation(activation):
    """Once, the activation was done in place, and no number of the window equalled its result."""
    network = Network((Conv(3, 3), MaxPool(2), activation, Dense(3), Sigmoid()), (1, 8, 8))
    params, grads, (x, labels) = parameters(network), network.zeros(), batch(network, 9)
    loss_and_gradients(KERNELS["vector"], params, x, labels, grads)
    np.testing.assert_allclose(grads.flat, by_reference(params, x, labels)[1].flat, atol=1e-5)
