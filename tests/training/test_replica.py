import functools

import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.kernels.workers import ALONE
from cnnlab.network import LENET5, Network
from cnnlab.runtime import thread_pool
from cnnlab.training import Method, Replica, Sgd
from tests.networks import report_network
from tests.replicas import replica_of

DIGITS = load("digits", 330, 100)


replica = functools.partial(replica_of, DIGITS)


def test_a_step_on_no_image_is_none():
    one = replica("vector")
    before = one.params.flat.copy()
    one.grads.flat[:] = np.nan
    assert one.gradients(np.arange(0)) == 0 and not one.grads.flat.any()
    assert (one.params.flat == before).all()


def test_steps_on_the_device_are_those_of_one_core():
    """Its loop keeps the images there, takes any parameters, and has no worker beside it."""
    order = np.random.default_rng(0).permutation(330)[:83]  # the last batch is a part of one
    one, other = replica("device", 40), replica("vector", 40)
    loops = one.loop(alone=True), other.loop()
    for part in (order, order[::-1].copy()):
        loss, expected = (loop(part) for loop in loops)
        np.testing.assert_allclose(one.params.flat, other.params.flat, atol=1e-6)
        assert loss == pytest.approx(expected, rel=1e-5)
        np.testing.assert_allclose(one.grads.flat, other.grads.flat, atol=1e-6)
    again, other = replica("device", 40), replica("vector", 40)
    assert again.loop(alone=True)(order) == pytest.approx(other.loop()(order), rel=1e-5)
    assert one.loop() is None and one.loop(ALONE) is None


@pytest.mark.parametrize("name", ["vector", "threads"])
@pytest.mark.parametrize("batch", [1, 16, 40])
def test_steps_without_a_way_back_to_python_are_the_same_steps(name, batch):
    order = np.random.default_rng(0).permutation(330)[: 2 * batch + 3]
    with thread_pool.threads(thread_pool.size() if name == "threads" else 1):
        fused, stepwise, alone = replica(name, batch), replica(name, batch), Method()
        if name == "threads":  # and so do those that are started for each step
            each = replica(name, batch)
            each.loop(ALONE)(order)
        loss, total = fused.loop()(order), 0.0
        for chosen in stepwise.batches(order):
            total += alone.step(stepwise, chosen)
    assert (fused.params.flat == stepwise.params.flat).all()
    if name == "threads":
        np.testing.assert_allclose(each.params.flat, fused.params.flat, atol=1e-6)
    assert loss == pytest.approx(total, rel=1e-12)
    assert (fused.grads.flat == stepwise.grads.flat).all()  # both hold the last step


def test_only_networks_that_are_fused_have_compiled_loops():
    assert all(replica(name, network=LENET5).loop() for name in ("vector", "threads"))
    assert replica("device", network=LENET5).loop(alone=True) is None
    assert replica("device", network=report_network(filters=2)).loop(alone=True)
    assert (
        replica("device", network=report_network(filters=40)).loop(alone=True) is None
    )  # fills a block
    assert replica("loops").loop() is None


def test_steps_on_images_that_are_not_there_are_refused():
    one = replica("vector", 2)
    before = one.params.flat.copy()
    for steps in (one.loop(), lambda order: list(one.batches(order))):
        for wrong in (np.array([0, 330]), np.array([-1, 5])):
            with pytest.raises(
                ValueError, match=r"order: expected numbers of images 0\.\.329, got"
            ):
                steps(wrong)
        with pytest.raises(TypeError, match="order: expected dtype int64"):
            steps(np.arange(4, dtype=np.int32))
    assert (one.params.flat == before).all()


def test_a_replica_of_what_does_not_go_together_is_refused():
    strategy, sgd, net = KERNELS["vector"], Sgd(0.1), Network()
    images, labels = DIGITS.train_images, DIGITS.train_labels
    for data, message in (
        ((images, labels[:5]), "labels: expected 330, one an image, got 5"),
        ((images, labels + 1), "labels: expected 0..9, got 10"),
        ((images[:, :, :20], labels), r"x: expected shape .* got \(1, 1, 20"),
    ):
        with pytest.raises(ValueError, match=message):
            Replica(strategy, net.parameters(), *data, 16, sgd)
    message, order = "^batch: expected a whole number of at least 1, got 0", np.arange(4)
    with pytest.raises(ValueError, match=message):
        replica("loops", 0)
    for name in ("vector", "threads", "device"):
        with pytest.raises(ValueError, match=message):
            steps = KERNELS[name].fused("sgd_steps", net)
            steps(net.parameters(), net.zeros(), images, labels, order, 0, 0.1)
