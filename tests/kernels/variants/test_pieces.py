import numpy as np
import pytest

from cnnlab.kernels.registers import LANES
from cnnlab.kernels.variants.pieces import gradients_in_pieces
from cnnlab.kernels.vector.side_by_side import scratch_memory
from cnnlab.kernels.vector.steps import Weights
from cnnlab.measure.bench import exact_gradients
from cnnlab.network import Network


@pytest.mark.parametrize("n_blocks", [1, 2, 4])
def test_pieces_of_any_size_give_the_gradients_of_the_batch(n_blocks):
    network, n = Network(), 4 * LANES
    params, grads = network.parameters(), network.zeros()
    images = np.random.default_rng(0).random((n, *network.image_shape), np.float32)
    labels = np.arange(n) % network.classes
    shapes = tuple(array.shape for array in params)
    scratch = scratch_memory("a test", (4,), network.image_shape, shapes)
    gradients_in_pieces(Weights(*params), Weights(*grads), images, labels, scratch, n_blocks)
    exact = exact_gradients(params, images, labels)
    np.testing.assert_allclose(grads.flat, exact.flat, rtol=2e-4, atol=1e-3)
