"""Optimisers: from the gradients of a batch to a step of the parameters. OPTIMIZERS lists them."""

from cnnlab.network import Parameters
from cnnlab.runtime.registry import Entry, listed

OPTIMIZERS = listed(
    Entry("sgd", "plain stochastic gradient descent", "cnnlab.training.optimizers:Sgd"),
)


class Sgd:
    """Stochastic gradient descent: params -= rate × mean gradient.

    The base of every optimiser. `loop` names the function of a strategy that takes many such steps
    in compiled code, or is None where no strategy has one. `state` holds arrays that a checkpoint
    keeps, by name.
    """

    loop: str | None = "sgd_steps"

    def __init__(self, rate: float):
        self.rate, self.state = rate, {}

    def update(self, params: Parameters, grads: Parameters, n_images: int) -> None:
        """Step along gradients that are summed over `n_images`; `grads` becomes the step."""
        grads.flat *= self.rate / n_images
        params.flat -= grads.flat
