"""Networks, images and parameters with which strategies are compared."""

import numpy as np

from cnnlab.kernels import KERNELS
from cnnlab.network import (
    EIGHT,
    LENET5,
    AveragePool,
    Conv,
    Dense,
    MaxPool,
    Network,
    Pool,
    ReLU,
    Sigmoid,
    report_network,
)

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
    "dense only": Network((Dense(7), Sigmoid(), Dense(4), ReLU(), Dense(3), Sigmoid()), (2, 4, 5)),
}

NETWORKS = REPORTS | OTHERS


def batch(network, n, dtype=np.float32, seed=0):
    """Images of float32 numbers, so that they are the same in every dtype; and labels."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, *network.image_shape)).astype(np.float32)
    return x.astype(dtype), rng.integers(0, network.classes, n)


def parameters(network, dtype=np.float32):
    """Parameters with biases, the same numbers in every dtype."""
    params = network.parameters(1)
    params.flat += np.random.default_rng(2).normal(size=params.flat.size).astype(np.float32) / 10
    same = network.zeros(dtype)
    same.flat[:] = params.flat
    return same
