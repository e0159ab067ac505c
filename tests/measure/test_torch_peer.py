import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.network import AveragePool, Conv, Dense, MaxPool, Network, Pool, ReLU, Sigmoid

torch = pytest.importorskip("torch")


ALL_LAYERS = Network(
    (
        *(Conv(3, 5), ReLU(), MaxPool(2), Conv(4, 3), Sigmoid(), AveragePool(2), Pool(2)),
        *(ReLU(), Dense(6), ReLU(), Dense(10), Sigmoid()),
    )
)


@pytest.mark.parametrize("network", [Network(), ALL_LAYERS])
def test_torch_is_the_same_network(network):
    from cnnlab.measure.bench import contestants

    result = contestants([], load("digits", 64, 10), 16, 1, "torch", network)
    assert result.keys() == {"torch", "torch, channels-last"} or torch.cuda.is_available()
    for peer in result.values():
        peer.check()
        peer.steps()
    assert result["torch, channels-last"].weights[0].stride() == (25, 1, 5, 1)  # one channel


def test_a_wrong_layer_of_torch_is_found(monkeypatch):
    from cnnlab.measure.torch_peer import FORWARD, TorchContestant

    monkeypatch.setitem(FORWARD, ReLU, lambda layer, x: torch.relu(x - 0.1))
    with pytest.raises(AssertionError, match="gradients of"):
        TorchContestant(load("digits", 64, 10), 16, 1, ALL_LAYERS).check()


def test_steps_on_a_gpu_are_an_epoch_and_the_same_ones(monkeypatch):
    """The processor stands in for the GPU."""
    from cnnlab.measure.torch_peer import TorchContestant, TorchOnGpu

    monkeypatch.setattr(TorchOnGpu, "device", "cpu")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    digits = load("digits", 70, 10)
    far, near = TorchOnGpu(digits, 16, 1), TorchContestant(digits, 16, 1)
    far.check()
    near.check()
    assert (far.n_steps, near.n_steps) == (4, 1)
    far.steps()
    for _ in range(4):
        near.steps()
    for one, other in zip(far.weights, near.weights, strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), atol=1e-6)
