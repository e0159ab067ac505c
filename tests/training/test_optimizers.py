import numpy as np
import pytest

from cnnlab.data import load
from cnnlab.network import Network, Parameters
from cnnlab.training import OPTIMIZERS, Diverged, checkpoint, train
from cnnlab.training.optimizers import Momentum

DIGITS = load("digits", 100, 50)
NET = Network()
STEPS = 30
OTHERS = [name for name in OPTIMIZERS if name != "sgd"]


# --- the formulas -------------------------------------------------------------------------------

START = NET.parameters(0, np.float64).flat
NOISE = np.random.default_rng(0).normal(size=(STEPS, START.size)) * 10.0 ** np.linspace(
    -9, 0, START.size
)  # gradients of any size: of the smallest, ε is a part


def slope(w, t):
    """A gradient that depends on where it is taken, and on the step."""
    return NOISE[t] * (1 + w)


def stepped(optimizer, dtype=np.float64):
    """The parameters after some steps; gradients are handed over as sums over 4 images."""
    params, grads = NET.parameters(0, dtype), NET.zeros(dtype)
    optimizer.begin(params)
    for t in range(STEPS):
        grads.flat[:] = 4 * slope(params.flat, t)
        before = params.flat.copy()
        optimizer.update(params, grads, 4)
        np.testing.assert_allclose(before - grads.flat, params.flat, atol=1e-6)
    return params.flat


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_is_pytorchs(name):
    torch = pytest.importorskip("torch")
    theirs = {
        "sgd": (torch.optim.SGD, {}),
        "momentum": (torch.optim.SGD, {"momentum": 0.9}),
        "nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        "adagrad": (torch.optim.Adagrad, {}),
        "rmsprop": (torch.optim.RMSprop, {}),
        "adam": (torch.optim.Adam, {}),
    }
    make = OPTIMIZERS[name].load()
    weights = torch.tensor(START, requires_grad=True)
    kind, options = theirs[name]
    optimizer = kind([weights], lr=make.usual, **options)
    ours, params, grads = make(make.usual), Parameters(NET, flat=START.copy()), NET.zeros(float)
    ours.begin(params)
    for t in range(STEPS):
        if t == STEPS // 2:  # a rate that changes on the way
            optimizer.param_groups[0]["lr"] = ours.rate = make.usual / 4
        weights.grad = torch.tensor(slope(params.flat, t))
        grads.flat[:] = slope(params.flat, t)
        optimizer.step()
        ours.update(params, grads, 1)
    np.testing.assert_allclose(params.flat, weights.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("momentum", [1, float("nan"), -0.1])
def test_impossible_parameters_are_refused_by_name(momentum):
    with pytest.raises(ValueError, match=r"^momentum: expected a "):
        Momentum(0.1, momentum)


# --- in a training ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_resumed_training_is_an_unbroken_one_to_the_bit(name, tmp_path):
    how, file = {"seed": 3, "optimizer": name, "batch": 32}, tmp_path / "training.npz"
    train(DIGITS, epochs=1, save=file, **how)
    resumed = train(DIGITS, epochs=3, resume=file, save=file, **how)
    unbroken = train(DIGITS, epochs=3, **how)
    losses = [[row["loss"] for row in run.history] for run in (resumed, unbroken)]
    assert losses[0] == losses[1] and [row["epoch"] for row in resumed.history] == [1, 2, 3]
    kept = checkpoint.load(file)
    for params in (resumed.params, kept.params):
        assert np.array_equal(params.flat, unbroken.params.flat)
    assert all(array.any() for array in kept.state.values())
    assert bool(kept.state) == (name != "sgd")
    assert "t" not in kept.state or kept.state["t"] == 12


@pytest.mark.parametrize("name", OTHERS)
def test_every_optimizer_learns_at_its_usual_rate(name):
    result = train(load("digits", 1000, 200), optimizer=name, epochs=4, batch=8)
    assert result.history[-1]["test_accuracy"] > 0.7


def test_a_rate_out_of_reason_diverges_with_any_optimizer():
    for name in OTHERS:
        with pytest.raises(Diverged, match="lower the rate"):
            train(DIGITS, optimizer=name, rate=1e8)
