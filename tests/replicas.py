"""Replicas that train on some data."""

from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.training import Replica, Sgd


def replica_of(data, kernels="vector", batch=16, rate=0.5, seed=0, network=None) -> Replica:
    """A replica of a network, the report's unless told otherwise."""
    strategy, network = KERNELS[kernels], network or Network()
    params = network.parameters(seed, strategy.dtype)
    return Replica(strategy, params, data.train_images, data.train_labels, batch, Sgd(rate))
