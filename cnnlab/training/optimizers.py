"""Optimisers: from the gradients of a batch to a step of the parameters. OPTIMIZERS lists them."""

import numpy as np

from cnnlab.network import Parameters
from cnnlab.runtime.arguments import Entry, listed

HERE = "cnnlab.training.optimizers:"
OPTIMIZERS = listed(
    Entry("sgd", "plain stochastic gradient descent", f"{HERE}Sgd"),
    Entry("momentum", "a velocity that remembers earlier gradients", f"{HERE}Momentum"),
    Entry("nesterov", "momentum, its gradient taken where the velocity leads", f"{HERE}Nesterov"),
    Entry("adagrad", "a rate for each parameter, by all its gradients so far", f"{HERE}AdaGrad"),
    Entry("rmsprop", "a rate for each parameter, by its latest gradients", f"{HERE}RMSProp"),
    Entry("adam", "momentum, and a rate for each parameter", f"{HERE}Adam"),
)


class Sgd:
    """Stochastic gradient descent: params -= rate × mean gradient.

    The base of every optimiser. `loop` names the function of a strategy that takes many such steps
    in compiled code, or is None where no strategy has one. `state` holds arrays that a checkpoint
    keeps, by name. `usual` is the rate to begin with, for batches of `training.BATCH`.
    """

    loop: str | None = "sgd_steps"
    usual = 0.4  # lesson 04 shows the choice

    def __init__(self, rate: float):
        self.rate, self.state = rate, {}

    def begin(self, params: Parameters) -> None:
        """Make room for the state that goes with such parameters, unless there is some."""

    def update(self, params: Parameters, grads: Parameters, n_images: int) -> None:
        """Step along gradients that are summed over `n_images`; `grads` becomes the step."""
        grads.flat *= self.rate / n_images
        params.flat -= grads.flat


class Directed(Sgd):
    """Steps in another direction than the gradient's: params -= rate × direction.

    The base of what follows. `arrays` names what is kept for each parameter, at first zeros;
    `direct` turns the mean gradient g into the direction, in place. All is elementwise, so that a
    rank which holds a block of the parameters steps as it would with all of them. The rate is
    outside of all that is kept: changed between two steps, it counts from the next one.
    """

    loop = None
    arrays: tuple[str, ...] = ()

    def begin(self, params: Parameters) -> None:
        """Zeros for each of `arrays`, unless there are some already."""
        for name in self.arrays:
            self.state.setdefault(name, np.zeros_like(params.flat))
        self.work = np.empty_like(params.flat)

    def update(self, params: Parameters, grads: Parameters, n_images: int) -> None:
        """Step along gradients that are summed over `n_images`; `grads` becomes the step."""
        step = grads.flat
        step /= n_images
        self.direct(step)
        step *= self.rate
        params.flat -= step

    def direct(self, g: np.ndarray) -> None:
        """Turn the mean gradient into the direction."""
        raise NotImplementedError


class Momentum(Directed):
    """v = µv + g; the direction is v (Qian 1999; µ is `momentum`)."""

    usual, arrays = 0.05, ("velocity",)

    def __init__(self, rate: float, momentum: float = 0.9):
        super().__init__(rate)
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum: expected a number from 0 to below 1, got {momentum!r}")
        self.momentum = momentum

    def direct(self, g: np.ndarray) -> None:
        """Turn the mean gradient into the velocity."""
        v = self.state["velocity"]
        v *= self.momentum
        v += g
        g[:] = v


class Nesterov(Momentum):
    """v = µv + g; the direction is g + µv (Nesterov 1983).

    The parameters kept are those to which the velocity leads: there the gradient is taken.
    """

    def direct(self, g: np.ndarray) -> None:
        """Turn the mean gradient into the step to the next place that the velocity leads to."""
        v = self.state["velocity"]
        v *= self.momentum
        v += g
        g += np.multiply(v, self.momentum, out=self.work)


class AdaGrad(Directed):
    """A = A + g²; the direction is g / (√A + ε) (Duchi, Hazan and Singer 2011)."""

    usual, arrays, epsilon = 0.1, ("squares",), 1e-10

    def direct(self, g: np.ndarray) -> None:
        """Divide the mean gradient by the root of the sum of all squares so far."""
        squares, work = self.state["squares"], self.work
        squares += np.square(g, out=work)
        np.sqrt(squares, out=work)
        work += self.epsilon
        g /= work


class RMSProp(Directed):
    """A = βA + (1 − β)g²; the direction is g / (√A + ε) (Hinton 2012)."""

    usual, arrays = 0.01, ("squares",)
    beta, epsilon = 0.99, 1e-8

    def direct(self, g: np.ndarray) -> None:
        """Divide the mean gradient by the root of the mean of recent squares."""
        squares, work = self.state["squares"], self.work
        average(squares, np.square(g, out=work), self.beta)
        np.sqrt(squares, out=work)
        work += self.epsilon
        g /= work


class Adam(Directed):
    """m = β₁m + (1 − β₁)g and v = β₂v + (1 − β₂)g², then m̂ / (√v̂ + ε) (Kingma and Ba 2015).

    m̂ = m / (1 − β₁ᵗ) and v̂ = v / (1 − β₂ᵗ), where t is 1 at the first step: both averages begin
    at zero, and this takes out how much they still weigh it.
    """

    usual, arrays = 0.01, ("mean", "squares")
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def begin(self, params: Parameters) -> None:
        """Zeros for both averages, and for the number of steps t."""
        super().begin(params)
        self.state.setdefault("t", np.zeros(()))

    def direct(self, g: np.ndarray) -> None:
        """Divide the mean of recent gradients by the root of the mean of their squares."""
        mean, squares, t = (self.state[name] for name in ("mean", "squares", "t"))
        t += 1
        work = self.work
        work[:] = g
        average(mean, work, self.beta1)
        average(squares, np.square(g, out=work), self.beta2)
        np.divide(squares, 1 - self.beta2 ** float(t), out=work)
        np.sqrt(work, out=work)
        work += self.epsilon
        np.divide(mean, work, out=g)
        g /= 1 - self.beta1 ** float(t)


def average(kept: np.ndarray, new: np.ndarray, beta: float) -> None:
    """Move a running average: kept = β kept + (1 − β) new, in place; `new` is lost."""
    kept *= beta
    new *= 1 - beta
    kept += new
