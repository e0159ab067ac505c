"""Paces: how batch and rate change while training, and a training that follows one.

A pace is a function of the epochs done, a fraction, that returns the batch and the rate.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cnnlab.kernels import Strategy, find
from cnnlab.network import Network
from cnnlab.runtime import arguments
from cnnlab.runtime.arguments import at_least
from cnnlab.training.loop import BATCH, accuracy
from cnnlab.training.method import Method
from cnnlab.training.optimizers import OPTIMIZERS, Sgd
from cnnlab.training.replica import Replica

Pace = Callable[[float], tuple[int, float]]
PIECES, LOOKS = 8, 4  # of an epoch: a pace is asked so often, and the test images are


class Look(NamedTuple):
    """A look at a training on its way: epochs and steps done so far, and what it has learned."""

    epochs: float
    steps: int
    batch: int
    rate: float
    accuracy: float


def steady(batch: int, rate: float) -> Pace:
    """The same batch and rate throughout."""
    return lambda epochs: (batch, rate)


def scaled(batch: int, rate: float = Sgd.usual, warm_up: float = 1.0) -> Pace:
    """A rate for batches of BATCH, scaled with the batch (Goyal and others 2017).

    Over the first `warm_up` epochs it climbs from the rate as given to the scaled one.
    """
    highest = rate * batch / BATCH

    def pace(epochs: float) -> tuple[int, float]:
        share = min(1.0, epochs / warm_up) if warm_up else 1.0
        return batch, rate + share * (highest - rate)

    return pace


def decaying(batch: int, rate: float, factor: float, after: float) -> Pace:
    """The rate is divided by `factor` each time that `after` epochs are done."""
    return lambda epochs: (batch, rate / factor ** (epochs // after))


def growing(batch: int, rate: float, factor: int, after: float) -> Pace:
    """The batch is multiplied by `factor` instead (Smith and others 2018)."""
    return lambda epochs: (batch * factor ** int(epochs // after), rate)


def follow(
    pace: Pace,
    data,
    *,
    kernels: str | Strategy = "vector",
    network: Network | None = None,
    optimizer: str = "sgd",
    seed: int = 0,
    epochs: int = 8,
    target: float = 2.0,
    every: int = 1,
) -> list[Look]:
    """Train at a pace, up to `epochs` or until the test accuracy is `target`; LOOKS an epoch.

    An epoch is taken in PIECES of whole batches, each at what the pace says as it begins; the order
    of the images is that of `train`. A look takes every n-th test image, n being `every`. The last
    look tells whether the target was reached. Raises ValueError for impossible arguments, or where
    a pace returns an impossible batch.
    """
    strategy, network = find(kernels), network or Network()
    at_least("epochs", epochs, 1)
    at_least("every", every, 1)
    make = arguments.find("optimizer", optimizer, OPTIMIZERS)
    params, n = network.parameters(seed, strategy.dtype), len(data.train_images)
    images, labels = data.train_images, data.train_labels
    replica = Replica(strategy, params, images, labels, 1, make(1.0))
    tested, said = data.test_images[::every], data.test_labels[::every]
    looks, method, done, steps = [], Method(), 0, 0
    while done < epochs * n:
        if done % n == 0:
            order = np.random.default_rng([seed, done // n + 1]).permutation(n)
        batch, replica.optimizer.rate = pace(done / n)
        at_least("batch", batch, 1)
        replica.batch = batch
        several = max(1, n // (PIECES * batch)) * batch
        part = order[done % n :][:several]
        with np.errstate(over="ignore", invalid="ignore"):
            method.steps(replica, part)
        done, steps = done + len(part), steps + -(-len(part) // batch)
        if done / n >= (len(looks) + 1) / LOOKS or done == epochs * n:
            result = accuracy(strategy, params, tested, said)
            looks.append(Look(done / n, steps, batch, replica.optimizer.rate, result))
            if result >= target:
                break
    return looks
