"""From consistent to independent: what ranks learn on their own, and what they send for it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cnnlab.distributed.trial import Counting
from cnnlab.kernels import find
from cnnlab.kernels.composition import forward
from cnnlab.network import Network, Parameters
from cnnlab.ranks.schedules import block
from cnnlab.ranks.virtual import World
from cnnlab.training import Method, Replica, Sgd, accuracy


class Learned(NamedTuple):
    """What ranks have learned together, and what each rank sent in a step, in bytes.

    `models` (P, n) are those of the ranks, after the last step of all. `sent` counts what they sent
    to learn: in steps, and where all go on from what ends an epoch, for that. What only brings
    models together for a test or a checkpoint does not count.
    """

    accuracy: float
    sent: float
    models: np.ndarray


def learn(
    make: Callable[..., Method], data, n_ranks: int, *, epochs: int, batch: int, rate: float,
    seed: int = 0, network: Network | None = None,
) -> Learned:  # fmt: skip
    """Train with make(comm) on virtual ranks, from one start, on batches of all ranks together."""
    network, world = network or Network(), Counting(n_ranks)

    def program(comm):
        replica = learner(data, network.parameters(seed), batch, rate)
        method, sent, n_steps = make(comm), 0, 0
        method.make_room(replica)
        for order in orders(data, seed, epochs):
            before = world.sent[comm.rank].sum()
            method.steps(replica, order)
            n_steps += -(-len(order) // batch)
            own, in_steps = replica.params.flat.copy(), world.sent[comm.rank].sum()
            method.gather(replica)
            # Where nothing is kept of each rank, all go on from what has been gathered.
            sent += (in_steps if method.kept else world.sent[comm.rank].sum()) - before
        return sent / n_steps, own, replica.params

    with np.errstate(over="ignore", invalid="ignore"):
        found = world.run(program)
    sent, models, (params, *_) = zip(*found, strict=True)
    right = accuracy("vector", params, data.test_images, data.test_labels)
    return Learned(right, float(np.mean(sent)), np.stack(models))


def ensemble(
    data, n_ranks: int, *, epochs: int, batch: int, rate: float, seed: int = 0, starts: int = 1000,
    network: Network | None = None,
) -> Learned:  # fmt: skip
    """Train as many networks as ranks, on shares of the same batches, and send nothing.

    Each has a start of its own, from seed + `starts` on (0: all have the one of `seed`). Their
    outputs are averaged, not their parameters.
    """
    network, models = network or Network(), []
    for rank in range(n_ranks):
        own = seed + rank + starts if starts else seed
        replica = learner(data, network.parameters(own), batch, rate)
        for order in orders(data, seed, epochs):
            for chosen in replica.batches(order):
                mine = chosen[slice(*block(rank, n_ranks, len(chosen)))]
                replica.gradients(mine)
                if len(mine):
                    replica.update(len(mine))
        models.append(replica.params.flat)
    models = np.stack(models)
    return Learned(vote(models, data, network), 0.0, models)


def vote(models: np.ndarray, data, network: Network | None = None) -> float:
    """The share of the test images that networks with these parameters (P, n) get right together.

    The class is that of the largest mean output.
    """
    return float((outputs(models, data, network).mean(0).argmax(1) == data.test_labels).mean())


def outputs(models: np.ndarray, data, network: Network | None = None) -> np.ndarray:
    """The outputs (P, images, classes) of networks with these parameters, for the test images."""
    network, strategy = network or Network(), find("vector")
    last, images = network.places[-1].name, data.test_images
    return np.stack([
        np.concatenate([
            forward(strategy, Parameters(network, flat=flat), images[k : k + 256])[last].copy()
            for k in range(0, len(images), 256)
        ])
        for flat in models
    ])  # fmt: skip


def learner(data, params: Parameters, batch: int, rate: float) -> Replica:
    """A replica that learns from the training images by plain gradient descent."""
    images, labels = data.train_images, data.train_labels
    return Replica(find("vector"), params, images, labels, batch, Sgd(rate))


def orders(data, seed: int, epochs: int) -> list[np.ndarray]:
    """The order of the images in each epoch: that of `training.train`."""
    n = len(data.train_images)
    return [np.random.default_rng([seed, epoch]).permutation(n) for epoch in range(1, epochs + 1)]


def members(models: np.ndarray, data, network: Network | None = None) -> np.ndarray:
    """The share of the test images that each network alone gets right (P)."""
    return (outputs(models, data, network).argmax(2) == data.test_labels).mean(1)


def challenge_averages(make, data, n_ranks: int, target: float, **how) -> float | None:
    """Train with make(comm) and say what a rank sends in a step, if the accuracy is reached.

    `how` is that of `learn`. Returns the bytes; None where the target was missed, or where ... or a
    function that returns nothing is not yet an answer.
    """
    if not callable(make) or World(1).run(make)[0] is None:
        print("challenge: not yet answered")
        return None
    found = learn(make, data, n_ranks, **how)
    if found.accuracy < target:
        print(f"✗ {found.accuracy:.1%} right; the goal is {target:.0%}")
        return None
    print(f"{found.accuracy:.1%} right, with {found.sent:,.0f} bytes a step from each rank")
    return found.sent
