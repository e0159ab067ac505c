"""The step of lesson 60, which is taken apart by a stopwatch, is the package's."""

import numpy as np

from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.lessons import lesson_60 as lesson


def test_a_step_goes_down_the_mean_gradient_and_names_its_parts():
    rng, network = np.random.default_rng(0), lesson.LENET5
    x, labels = rng.random((3, 1, 28, 28), np.float32), rng.integers(0, 10, 3)
    params, expected, grads = (network.parameters() for _ in range(3))
    loss_and_gradients(KERNELS["loops"], params, x, labels, grads)
    expected.flat -= np.float32(0.5 / 3) * grads.flat
    laps = []
    lesson.step(KERNELS["loops"], params, x, labels, grads, 0.5, lambda *what: laps.append(what))
    np.testing.assert_allclose(params.flat, expected.flat, rtol=1e-5, atol=1e-7)
    names = [place.name for place in network.places]
    assert laps[: len(names)] == [(name, "forward") for name in names]
    assert laps[-2:] == [("conv1", "backward"), ("all", "update")]
