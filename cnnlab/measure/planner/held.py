"""What a rank holds: parameters, gradients, what compressors and servers keep, and activations.

All are counted in float32. Activations are those kept for the way back; buffers of messages are not
counted.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.model import FEATURES, Cut, Shares, cuts, length, shares
from cnnlab.measure.planner.problem import Problem
from cnnlab.network import Network, Place


def alone(problem: Problem) -> int:
    """All parameters and gradients, and the activations of the whole batch."""
    return 2 * problem.n + problem.batch * outputs(problem)


def replicas(problem: Problem, compress: str | None = None, **options) -> int:
    """All parameters and gradients, the activations of a share, and what compressors owe."""
    owed = 0
    if compress:
        shard = -(-problem.n // problem.n_ranks)
        last = compressor(compress)(shard).of_sum().state.values()
        owed = problem.n_ranks * owes(compress, shard) + sum(map(np.size, last))
    return 2 * problem.n + owed + problem.share * outputs(problem)


def elastic(problem: Problem, **options) -> int:
    """The centre, too."""
    return replicas(problem) + problem.n


def sharded(problem: Problem) -> int:
    """A share of every layer's parameters and gradients, and one layer's whole, at its turn."""
    layers = list(map(of_layer, problem.network.places))
    shares = sum(-(-n // problem.n_ranks) for n in layers)
    return 2 * (shares + max(layers)) + problem.share * outputs(problem)


def server(problem: Problem, compress: str | None = None, **options) -> int:
    """A worker, or the server with a gradient of each worker; both have a compressor."""
    n, workers = problem.n, problem.n_ranks - 1
    owed = owes(compress, n) if compress else 0
    worker = 2 * n + -(-problem.batch // workers) * outputs(problem)
    return max(worker, 2 * n + workers * n) + owed


def owes(compress: str, n: int) -> int:
    """The numbers that a compressor of messages of n numbers keeps."""
    return sum(np.size(array) for array in compressor(compress)(n).state.values())


def outputs(problem: Problem) -> int:
    """The numbers kept of an image for the way back: itself, and every layer's output."""
    network = problem.network
    return prod(network.image_shape) + sum(prod(place.shape) for place in network.places)


class Share(NamedTuple):
    """What each rank (P,) has of a layer: parameters; of an image, its input and its output.

    `sent` says whether the input is what others sent, which is kept beside a rank's own share.
    """

    parameters: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray
    sent: bool


def of_shares(network: Network, size: int, cut: str) -> list[Share]:
    """What ranks have of every layer, where each is cut among so many of them."""
    found, travels = cuts(network, size, cut), shares(network, size, cut)

    def share(place: Place, its: Cut, travels: Shares) -> Share:
        outputs = np.array(list(map(length, its.ranges))) / place.shape[its.axis - 1]
        inputs = np.array(list(map(length, travels.needed))) / travels.length
        n = of_layer(place) * (outputs if its.axis == FEATURES else np.ones(size))
        sent = travels.owned != travels.needed
        return Share(n, prod(place.input_shape) * inputs, prod(place.shape) * outputs, sent)

    return list(map(share, network.places, found, travels))


def by_layers(problem: Problem, cut: str = "features") -> int:
    """Numbers held where every layer is cut: shares of parameters and outputs, inputs as sent."""
    its = of_shares(problem.network, problem.n_ranks, cut)
    parameters = sum(share.parameters for share in its)
    return round((2 * parameters + problem.batch * kept(its)).max())


def kept(its: Sequence[Share]) -> np.ndarray:
    """The numbers (P,) kept of an image for the way back through some layers in a row."""
    first, *others = its
    inputs = first.inputs + sum(share.sent * share.inputs for share in others)
    return inputs + sum(share.outputs for share in its)


def of_layer(place: Place) -> int:
    """The parameters of a layer."""
    return sum(map(prod, place.layer.parameter_shapes(place.input_shape).values()))
