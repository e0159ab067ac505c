"""The kernels on a real GPU: `pytest -m gpu`. Elsewhere the emulator's tests cover them."""

import numpy as np
import pytest

from cnnlab import check, cuda
from cnnlab.cuda.step import Step
from cnnlab.kernels import CONTRACT, device
from cnnlab.kernels.variants.cuda_c import LADDER
from cnnlab.network import Network

if not cuda.gpu()[0]:
    pytest.skip(cuda.gpu()[1], allow_module_level=True)
pytestmark = pytest.mark.gpu

FUNCTIONS = [(operation, getattr(device, operation)) for operation in CONTRACT]
FUNCTIONS += [(o, f) for o, ways in LADDER.items() for f in ways.values()]


@pytest.mark.parametrize("operation, function", FUNCTIONS)
def test_every_kernel_agrees_with_the_reference(operation, function):
    assert check.kernel(operation, function)


@pytest.mark.parametrize("fused", [False, True])
def test_a_graph_replays_the_steps(fused):
    images = np.random.default_rng(0).random((20, 1, 28, 28), np.float32)
    params, labels = Network().parameters(seed=0), np.arange(20) % 10
    given = {"batch": 5, "fused": fused}
    one, other = (Step(params, images, labels, **given) for _ in range(2))
    replay = one.graph()
    for _ in range(4):
        replay()
        other()
    cuda.wait()
    assert np.allclose(one.parameters().flat, other.parameters().flat, atol=1e-5)
    assert not np.array_equal(one.parameters().flat, params.flat)


def test_arrays_of_the_host_are_refused_where_nothing_would_come_back():
    kernels = cuda.load("elementwise")
    array = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match="sigmoid: expected CuPy arrays"):
        kernels.prepare("sigmoid", (1,), (32,), array, array, 4)
