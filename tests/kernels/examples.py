"""Networks, images and parameters with which strategies are compared."""

import numpy as np

from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.network import (
    EIGHT,
    INCEPTION,
    LENET5,
    RESIDUAL,
    Add,
    AveragePool,
    Concat,
    Conv,
    Dense,
    MaxPool,
    Network,
    Pool,
    ReLU,
    Sigmoid,
)
from tests.networks import report_network

REFERENCE = KERNELS["reference"]
FAST = [name for name in KERNELS if name != "reference"]
REPORTS = {
    "report": Network(),
    "two channels": report_network(2, 19, 23, filters=3, kernel=3, pool=2, classes=5),
    "one class": report_network(1, 12, 15, filters=1, kernel=7, pool=3, classes=1),
    "windows of one": report_network(3, 10, 9, filters=5, kernel=4, pool=1, classes=2),
}
OTHERS = {
    "lenet5": LENET5,
    "eight": EIGHT,
    "average": Network(
        (
            Conv(4, 3),
            Sigmoid(),
            AveragePool(2),
            Conv(3, 2),
            ReLU(),
            MaxPool(3),
            Dense(5),
            Sigmoid(),
        ),
        (2, 17, 16),
    ),
    "three convolutions": Network(
        (Conv(3, 3), ReLU(), Conv(2, 2), Conv(4, 1), Pool(3), ReLU(), Dense(3), Sigmoid()),
        (3, 11, 13),
    ),
    "nothing to learn first": Network(
        (MaxPool(2), ReLU(), AveragePool(2), Pool(2), Dense(6), ReLU(), Dense(2), Sigmoid()),
        (2, 17, 18),
    ),
    "windows that overlap": Network(
        (Conv(2, 2), MaxPool(3, 2), Sigmoid(), AveragePool(3, 1), Pool(2, 3), Dense(3), Sigmoid()),
        (2, 14, 15),
    ),
    "inception": Network(INCEPTION.layers, (1, 14, 14)),
    "residual": Network(RESIDUAL.layers, (2, 12, 14)),
    "used twice": Network(
        (
            *(("a", Conv(3, 3)), ("twice", Concat(), "a", "a"), ("sum", Add(), "a", "a")),
            *(("both", Concat(), "sum", "twice"), ReLU(), Dense(2), Sigmoid()),
        ),
        (2, 9, 9),
    ),
    "dense only": Network((Dense(7), Sigmoid(), Dense(4), ReLU(), Dense(3), Sigmoid()), (2, 4, 5)),
}

NETWORKS = REPORTS | OTHERS


def batch(network, n, dtype=np.float32, seed=0):
    """Images of float32 numbers, so that they are the same in every dtype; and labels."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, *network.image_shape)).astype(np.float32)
    return x.astype(dtype), rng.integers(0, network.classes, n)


def parameters(network, dtype=np.float32):
    """Parameters with biases, the same numbers in every dtype; none of many ReLU is always 0."""
    params = network.parameters(1)
    noise = np.random.default_rng(2).normal(size=params.flat.size).astype(np.float32) / 10
    params.flat += np.where((params.flat == 0) | ("ReLU" not in network.form), noise, 0)
    same = network.zeros(dtype)
    same.flat[:] = params.flat
    return same


def by_reference(params, x, labels):
    """The reference's loss and gradients in float64, with parameters of any dtype."""
    exact, grads = params.network.zeros(np.float64), params.network.zeros(np.float64)
    exact.flat[:] = params.flat
    with np.errstate(invalid="ignore"):
        return loss_and_gradients(REFERENCE, exact, x.astype(np.float64), labels, grads), grads
