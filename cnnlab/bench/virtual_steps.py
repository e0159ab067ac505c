"""Steps of data parallelism in the virtual world: what they take on any number of ranks."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cnnlab.bench import measure
from cnnlab.kernels import Strategy, find
from cnnlab.network import Network
from cnnlab.ranks.schedules import block
from cnnlab.ranks.virtual import Link, World
from cnnlab.training import Replica, Sgd
from cnnlab.training.pace import Look


class Compute(NamedTuple):
    """A model of what one rank computes: seconds for a step, and for each image of its share."""

    step: float
    image: float

    def seconds(self, n_images: int) -> float:
        """The gradients of so many images, and the update."""
        return self.step + n_images * self.image


def compute_model(
    sizes: Sequence[int] = (1, 16, 64, 256),
    kernels: str | Strategy = "vector",
    network: Network | None = None,
    repeats: int = 9,
) -> tuple[Compute, dict[int, float]]:
    """The model fitted to gradients and update on this machine, and the medians, by images."""
    strategy, network = find(kernels), network or Network()
    images = np.random.default_rng(0).random((max(sizes), *network.image_shape), np.float32)
    labels = np.arange(len(images)) % network.classes
    of = Replica(strategy, network.parameters(), images, labels, len(images), Sgd(1e-3))

    def call(n: int):
        chosen = np.arange(n)
        return lambda: (of.gradients(chosen), of.update(n))

    timings = measure.compare({str(n): call(n) for n in sizes}, repeats=repeats)
    medians = {n: timings[str(n)].median for n in sizes}
    weights = [1 / seconds for seconds in medians.values()]  # so that relative errors count
    image, step = np.polyfit(sizes, list(medians.values()), 1, w=weights)
    return Compute(max(0.0, float(step)), float(image)), medians


@functools.cache
def step_seconds(n_ranks: int, batch: int, compute: Compute, link: Link, n_numbers: int) -> float:
    """The virtual seconds of one step: each rank computes its share, then all add up gradients."""

    def program(comm) -> None:
        first, last = block(comm.rank, comm.size, batch)
        comm.compute(compute.seconds(last - first))
        mine = np.zeros(n_numbers, np.float32)
        comm.Allreduce(mine, np.empty_like(mine))

    world = World(n_ranks, link)
    world.run(program)
    return world.seconds


def training_seconds(
    looks: Sequence[Look], n_ranks: int, compute: Compute, link: Link, n_numbers: int
) -> float:
    """The virtual seconds of a training at a pace, on so many ranks.

    Ranks find the parameters of one, so the steps are those of any training at that pace.
    """
    total, before = 0.0, 0
    for look in looks:
        each = step_seconds(n_ranks, look.batch, compute, link, n_numbers)
        total, before = total + (look.steps - before) * each, look.steps
    return total
