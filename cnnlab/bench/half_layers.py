"""What half of a layer costs, cut by features or by pixels: the kernels alone, without messages."""

from collections.abc import Callable

import numpy as np

from cnnlab.bench.measure import Timing, compare
from cnnlab.kernels import find
from cnnlab.network import Conv, Network, Place

HALVES = "whole", "half of the filters", "half of the rows"


def half_layers(network: Network, n_images: int = 64, repeats: int = 9) -> dict[str, Timing]:
    """Seconds of all convolutions of a network, forward and backward, and of their halves.

    Half of the filters needs the whole input; half of the rows of the output, the halo with them.
    """
    layers = [place for place in network.places if isinstance(place.layer, Conv)]
    calls = {half: [passes(place, n_images, half) for place in layers] for half in HALVES}
    together = {half: lambda of=of: [call() for call in of] for half, of in calls.items()}
    return compare(together, repeats=repeats)


def passes(place: Place, n_images: int, half: str) -> Callable[[], None]:
    """The three kernels of a convolution on noise, or of half of it, as one call."""
    (c, h, w), (f, rows, columns), k = place.input_shape, place.shape, place.layer.kernel
    if half == "half of the filters":
        f //= 2
    if half == "half of the rows":
        rows //= 2
        h = rows + k - 1
    rng = np.random.default_rng(0)
    shapes = (n_images, c, h, w), (f, c, k, k), (f,), (n_images, f, rows, columns)
    x, weights, bias, dy = (rng.random(shape, np.float32) for shape in shapes)
    y, dx, dw = np.empty_like(dy), np.empty_like(x), np.empty_like(weights)
    forward, inputs, gradients = (
        find("vector").kernel(f"conv_{name}")
        for name in ("forward", "backward_input", "backward_weights")
    )

    def call() -> None:
        forward(x, weights, bias, y)
        inputs(dy, weights, dx)
        gradients(x, dy, dw)

    return call
