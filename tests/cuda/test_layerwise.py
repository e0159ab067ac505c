import numpy as np
import pytest

from cnnlab.cuda.step import Layerwise
from tests.cuda.examples import NET, N, digits, trained


@pytest.mark.parametrize("fused, launches", [(False, 19), (True, 13)])
@pytest.mark.parametrize("replayed", [False, True])
def test_steps_are_those_of_the_reference(fused, launches, replayed):
    step = Layerwise(NET.parameters(seed=1), *digits(), batch=3, rate=0.5, fused=fused)
    assert step.n_launches == launches and step.steps_an_epoch == 3
    order = np.random.default_rng(2).permutation(N)
    step.start(order)
    run = step.graph() if replayed else step
    for _ in range(3):
        run()
    flat, loss = trained(order, 3, 0.5, 3)
    assert np.allclose(step.parameters().flat, flat, rtol=0, atol=2e-6)
    assert step.loss() == pytest.approx(loss, rel=1e-5)
    step.start(range(N))  # a new epoch begins at the first image of its order
    run()
    assert step.loss() != pytest.approx(loss, rel=1e-3)
