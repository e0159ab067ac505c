"""Trainings under a virtual parameter server: what they learn, by images and by time."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cnnlab.data import load
from cnnlab.distributed.ledger import Ledger
from cnnlab.distributed.one_sided import one_sided
from cnnlab.distributed.server import SERVER, Server
from cnnlab.kernels import KERNELS
from cnnlab.lessons.lesson_55 import Parabola
from cnnlab.measure.worlds import Compute
from cnnlab.network import Network
from cnnlab.ranks import world
from cnnlab.ranks.virtual import World, network_of, stragglers
from cnnlab.training import Replica, Sgd

NETWORK = "5us,10GB/s"  # a link of its own between any two ranks
CORE = Compute(20e-6, 2.5e-6)  # seconds of a gradient, and of each image in it: one core of today
APPLY = 1e-6  # seconds that a server takes to apply a gradient
LOOKS = 24  # at the loss, in a run
VECTOR = KERNELS["vector"]


class Look(NamedTuple):
    """Images whose gradients have been applied, virtual seconds, and the loss of an image."""

    images: int
    seconds: float
    loss: float


class Run(NamedTuple):
    """A training: what was seen of it, what the server has done, and images in a virtual second."""

    looks: list[Look]
    ledger: Ledger
    throughput: float

    @property
    def staleness(self) -> float:
        """How many gradients of others a gradient has missed, in the mean."""
        missed = self.ledger.missed
        return sum(n * of for n, of in missed.items()) / sum(missed.values())

    def loss_at(self, seconds: float) -> float:
        """The loss at a moment, between two looks by a straight line."""
        return float(
            np.interp(seconds, [x.seconds for x in self.looks], [x.loss for x in self.looks])
        )


class Watched(Server):
    """A server that charges for what it computes, and looks at the loss LOOKS times in an epoch."""

    watch: Callable[[], float] | None = None

    def apply(self, replica: Replica, worker: int, piece: slice, gradient: np.ndarray) -> None:
        """Take a gradient in; and look, whenever another part of the epoch has been applied."""
        times = self.ledger.times
        before = LOOKS * times.sum() // times.size
        super().apply(replica, worker, piece, gradient)
        self.comm.compute(APPLY)
        if self.watch and LOOKS * times.sum() // times.size > before:
            self.looks.append(Look(int(times.sum()), self.clock(), self.watch()))


def learn(
    data, n_workers: int, staleness: int | str, *, images: int = 8, rate: float = 0.1,
    epochs: int = 1, make: type[Watched] = Watched, seed: int = 0, **pace,
) -> Run:  # fmt: skip
    """Train with so many workers, each with about so many `images` at a time; all from one start.

    `rate` is that of one worker alone: it grows with the batch, so that an image counts the same
    for any number of them. `pace` is as in `paced`. The loss is that of the first 500 test images.
    """
    tested = np.arange(min(500, len(data.test_labels)))
    n = len(data.train_labels)
    order = [np.random.default_rng([seed, epoch]).permutation(n) for epoch in range(epochs)]

    def program(comm):
        params, batch = Network().parameters(seed), images * n_workers
        of = Replica(VECTOR, params, data.train_images, data.train_labels, batch, Sgd(1.0))
        of.optimizer.rate = rate * n_workers
        test = Replica(VECTOR, params, data.test_images, data.test_labels, 1, Sgd(1.0))
        gradients, method = of.gradients, make(comm, staleness)

        def charged(chosen):
            comm.compute(CORE.seconds(len(chosen)))
            return gradients(chosen)

        of.gradients, method.looks = charged, []
        method.watch = lambda: test.gradients(tested) / len(tested)
        method.steps(of, np.concatenate(order))
        return method

    virtual = paced(n_workers, seed=seed, **pace)
    with np.errstate(over="ignore", invalid="ignore"):
        method = virtual.run(program)[SERVER]
    return Run(method.looks, method.ledger, epochs * n / virtual.seconds)


def steps(
    n_workers: int, staleness: int | str, *, images: int = 64, n_each: int = 16,
    make: type[Watched] = Watched, **pace,
) -> World:  # fmt: skip
    """The world after `n_each` gradients of each worker, of so many images, that nobody computes.

    They take their time, as `pace` says, see `paced`; only the messages are sent in earnest.
    """
    order, network = np.zeros(images * n_workers * n_each, np.int64), Network()
    one = np.zeros((1, *network.image_shape), np.float32)

    def program(comm) -> None:
        of = Replica(VECTOR, network.parameters(), one, order[:1], images * n_workers, Sgd(1.0))
        of.gradients = lambda chosen: comm.compute(CORE.seconds(len(chosen))) or 0.0
        make(comm, staleness).steps(of, order)

    virtual = paced(n_workers, **pace)
    virtual.run(program)
    return virtual


def throughput(
    n_workers: int, staleness: int | str, *, images: int = 64, n_each: int = 16, **how
) -> float:
    """Images in a virtual second; see `steps`."""
    virtual = steps(n_workers, staleness, images=images, n_each=n_each, **how)
    return images * n_workers * n_each / virtual.seconds


def one_sided_throughput(
    n_ranks: int, n_shards: int, n_parameters: int, *, images: int = 8, n_each: int = 4, **pace
) -> float:
    """Images in a virtual second where ranks reach into windows; nobody computes, see `steps`.

    Parameters are float64, so many as are asked for.
    """
    order = np.zeros(images * n_ranks * n_each, np.int64)

    def program(comm) -> None:
        of = Slope(0.0, n_ranks, np.zeros(n_parameters))
        of.gradients = lambda chosen: comm.compute(CORE.seconds(len(chosen)))
        one_sided(comm, of, order, images, n_shards)

    virtual = World(n_ranks, **{"network": NETWORK} | pace)
    virtual.run(program)
    return len(order) / virtual.seconds


def paced(
    n_workers: int, *, network: str = NETWORK, slow: int = 0, factor: float = 5.0,
    jitter: float = 0.0, seed: int = 0,
) -> World:  # fmt: skip
    """A world of a server and workers; `slow` of them, drawn, take `factor` times as long."""
    speed = [1.0, *stragglers(n_workers, slow, factor, seed)]
    return World(1 + n_workers, network, speed=speed, jitter=jitter, seed=seed)


def on_ranks(comm, staleness: int | str, epochs: int = 5) -> tuple[list[str], list[float]]:
    """On each rank: train on a few digits; what the ledger finds wrong, and the epochs' losses.

    `comm` None stands for the ranks of mpiexec or of a cluster.
    """
    digits, params = load("digits", 120, 10), Network().parameters(0)
    of = Replica(VECTOR, params, digits.train_images, digits.train_labels, 12, Sgd(0.5))
    method = Server(comm or world(), staleness)
    order = np.arange(len(digits.train_labels))
    losses = [method.epoch(of, order, lambda loss, n: None) / len(order) for _ in range(epochs)]
    return method.ledger.faults(method.staleness) if method.ledger else [], losses


def roof(images: int = 64) -> float:
    """Images in a second, at most: all gradients come through one server, one after the other."""
    link = network_of(NETWORK, 2).link
    n_bytes = Network().parameters().flat.nbytes
    return images / (2 * link.call + n_bytes / link.bandwidth + APPLY)


class Slope(Parabola):
    """A parabola as a server knows a replica: each image has the gradient x."""

    def __init__(self, rate: float, batch: int, start: Sequence[float] = (1.0,)):
        super().__init__(start, rate, 1.0)
        self.batch = batch

    def check_order(self, order: np.ndarray) -> None:
        """There are no images."""


def path(n_workers: int, staleness: int | str, rate: float, n_steps: int = 60) -> np.ndarray:
    """Where the server takes x on the parabola ½x², from 1; after each gradient or sum of them.

    Workers are equal, and take turns. `rate` is that of one gradient.
    """

    class Tracked(Server):
        def apply(self, replica, *what) -> None:
            super().apply(replica, *what)
            places.append(replica.params.flat[0])

    def program(comm) -> None:
        of = Slope(rate, n_workers)
        of.gradients = lambda chosen: comm.compute(1.0) or Parabola.gradients(of, chosen)
        Tracked(comm, staleness).steps(of, np.arange(n_workers * n_steps))

    places: list[float] = [1.0]
    World(1 + n_workers).run(program)
    return np.array(places)


def bound(missed: int) -> float:
    """The largest rate of gradients that have each missed so many others, on the parabola ½x².

    x ← x − rate × (x as it was `missed` steps before) has a root of size 1 at 2 sin(π / (4 d + 2)).
    """
    return 2 * math.sin(math.pi / (4 * missed + 2))


def largest_rate(n_workers: int, staleness: int | str, near: float) -> float:
    """The largest rate at which the path comes closer to 0, of those within 5 % of a number."""
    tried = near * np.linspace(0.95, 1.05, 6)
    sizes = [abs(path(n_workers, staleness, rate)) for rate in tried]
    quarter = len(sizes[0]) // 4
    grown = [of[-quarter:].max() / of[-2 * quarter : -quarter].max() for of in sizes]
    return float(np.interp(0, np.log(grown), tried))


def challenge_server(make, data, seconds: float, loss: float, **how) -> float | None:
    """Train with the class that `make()` returns, and say when it is at a loss, in virtual seconds.

    Both that loss and `seconds`, the time to beat, are those of a run of the lesson; `how` is that
    of `learn`. Returns the time; None where the loss was missed, or where there is no answer yet.
    """
    if not callable(make) or (kind := make()) is None:
        print("challenge: not yet answered")
        return None
    looks = learn(data, staleness="any", make=kind, **how).looks
    there = next((look.seconds for look in looks if look.loss <= loss), None)
    if there is None:
        print(f"✗ the loss came down to {min(look.loss for look in looks):.3f}, not to {loss:.3f}")
        return None
    word = "faster" if there < seconds else "not faster"
    print(f"at {loss:.3f} after {1e3 * there:.1f} virtual ms: {word} than {1e3 * seconds:.1f}")
    return there
