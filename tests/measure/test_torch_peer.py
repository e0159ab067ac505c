import numpy as np
import pytest

from cnnlab.data import load

torch = pytest.importorskip("torch")


def test_torch_is_the_same_network():
    from cnnlab.measure.bench import contestants

    result = contestants([], load("digits", 64, 10), 16, 1, "torch")
    assert result.keys() == {"torch"} or torch.cuda.is_available()
    for peer in result.values():
        peer.check()
        peer.steps()


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
