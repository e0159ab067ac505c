"""Whether ranks that hold parts of a network, and no rank alone, take the same steps."""

import numpy as np

from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.network import NETWORKS
from cnnlab.ranks.virtual import World
from cnnlab.training import Method, Replica
from cnnlab.training.optimizers import Momentum

DIGITS = load("digits", 30, 10)
BATCHES = np.array([3, 1, 4, 15, 9, 2, 6, 5, 8, 7, 29]), np.array([0, 11, 12])


def replica(network):
    params = NETWORKS[network].parameters(0)
    params.flat[params.flat == 0] = 0.01  # biases, of which an error would not show
    optimizer = Momentum(NETWORKS[network].usual_rate)
    images = DIGITS.train_images, DIGITS.train_labels
    return Replica(KERNELS["vector"], params, *images, 11, optimizer)


def steps(method, network):
    """The loss of two steps, and all parameters and state after them."""
    group = replica(network)
    loss = sum(method.total(method.step(group, chosen)) for chosen in BATCHES)
    method.gather(group)
    return loss, group.params.flat, group.optimizer.state


def check(result, network):
    """Compare what ranks have found with the steps of one."""
    loss, params, state = steps(Method(), network)
    assert abs(params - replica(network).params.flat).max() > 1e-3
    for its_loss, its_params, its_state in result:
        np.testing.assert_allclose(its_loss, loss, rtol=1e-5)
        np.testing.assert_allclose(its_params, params, atol=2e-6)
        for name, array in state.items():
            np.testing.assert_allclose(its_state[name], array, atol=2e-6)


def check_virtual(n, make, network):
    """Compare virtual ranks that train with make(comm)."""
    check(World(n).run(lambda comm: steps(make(comm), network)), network)
