"""A machine as the planner sees it: what kernels take, and what ranks take to exchange messages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from cnnlab.distributed.trial import CALL, RATE
from cnnlab.measure.worlds import Compute
from cnnlab.network import Network, Place
from cnnlab.ranks.virtual import Link


class Kernel(NamedTuple):
    """A call of a kernel, and its operations for each image: multiply-adds, or else elements."""

    name: str
    operations: int


class Packing(NamedTuple):
    """What a compressor takes to encode and to decode a message: seconds, and for each number."""

    encode: Compute = Compute(0.0, 0.0)
    decode: Compute = Compute(0.0, 0.0)


class Work(NamedTuple):
    """The kernels of a layer: forward, backward to its input, and for its weights."""

    forward: list[Kernel]
    backward: list[Kernel]
    weights: list[Kernel]

    @property
    def back(self) -> list[Kernel]:
        """Those of the way back."""
        return self.backward + self.weights


def layer_work(place: Place, first: bool = False, last: bool = False) -> Work:
    """The work of a layer, as `kernels.composition` calls it.

    Of the first, nobody needs the input's gradient; with the last comes the loss, and its sigmoid's
    gradient with that.
    """
    layer, name, n = place.layer, place.layer.operation, prod(place.shape)
    linear = layer.multiply_adds(place.input_shape) > 0
    sums = layer.multiply_adds(place.input_shape) or prod(place.input_shape)
    forward = Kernel(name if layer.elementwise else f"{name}_forward", sums)
    if last:
        return Work([forward, Kernel("cross_entropy", n)], [], [])
    backward = Kernel(f"{name}_backward_input" if linear else f"{name}_backward", sums)
    learned = layer.parameter_shapes(place.input_shape)
    weights = [Kernel(f"{name}_backward_weights", sums), Kernel(f"{name}_backward_bias", n)]
    return Work([forward], [] if first else [backward], weights if learned else [])


def network_work(network: Network) -> list[Work]:
    """The work of each layer in a step; below the first that learns, nothing goes back."""
    places, first = network.places, network.first_learned
    found = [layer_work(p, i == first, i == len(places) - 1) for i, p in enumerate(places)]
    return [of if i >= first else Work(of.forward, [], []) for i, of in enumerate(found)]


@dataclass(frozen=True)
class Machine:
    """What a call of a kernel takes, and what messages do: as it stands, the virtual world's.

    `kernels` has the time of those that were measured; any other takes what a `Charged` one does.
    `whole` is that of a step alone, where it was measured: gradients of so many images, and the
    update. `packing` is by compressor, and nothing for those that were not measured.
    """

    link: Link = field(default_factory=Link)
    kernels: Mapping[Kernel, Compute] = field(default_factory=dict)
    whole: Compute | None = None
    packing: Mapping[str, Packing] = field(default_factory=dict)

    def computing(self, kernels: Iterable[Kernel], n_images: float) -> float:
        """Seconds of kernels on so many images; half of a layer counts as half an image."""
        times = (self.kernels.get(k, Compute(CALL, k.operations / RATE)) for k in kernels)
        return sum(each.seconds(n_images) for each in times)

    def gradients(self, network: Network, n_images: int) -> float:
        """Seconds of the whole network's gradients."""
        if not n_images:
            return 0.0
        if self.whole:
            return self.whole.seconds(n_images)
        layers = network_work(network)
        return sum(self.computing(of.forward + of.back, n_images) for of in layers)

    def exchange(self, sent: np.ndarray) -> float:
        """Seconds until all ranks have what others send them: bytes (P,P), from row to column.

        A rank's short messages leave one after the other, long ones all at once, on their links.
        """
        if not sent.any():
            return 0.0
        calls = np.count_nonzero(sent, 0) + np.count_nonzero(sent, 1)
        short = np.where(sent <= self.link.eager, sent, 0).sum(1)
        long = np.where(sent > self.link.eager, sent, 0).max(1)
        busy = calls * self.link.call + (short + long) / self.link.bandwidth
        return float(busy.max()) + self.link.latency
