"""Sparse gradients: what is learnt of them, how their sums fill up, and what choosing takes."""

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cnnlab.bench import measure
from cnnlab.bench.measure import Timing
from cnnlab.distributed.compressors.dgc import DeepGradientCompression
from cnnlab.distributed.compressors.streams import Stream, Streams
from cnnlab.distributed.compressors.topk import select
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.distributed.trial import Counting
from cnnlab.kernels import find
from cnnlab.network import Network
from cnnlab.ranks.virtual import World
from cnnlab.runtime import cache
from cnnlab.training import Diverged, Replica, Sgd, train

PLAN = {"batch": 32, "epochs": 2, "progress": False}


class Dropped(Streams):
    """Top-k without error feedback: what is not sent is lost."""

    def choose(self, gradient: np.ndarray, n_images: int, n_ranks: int) -> Stream:
        """Places and numbers of this gradient alone."""
        self.residual[:] = 0
        return super().choose(gradient, n_images, n_ranks)


class Noting(Streams):
    """Top-k that keeps the places it has sent last: `latest`, int32 (k)."""

    def choose(self, gradient: np.ndarray, n_images: int, n_ranks: int) -> Stream:
        """Places and numbers to send."""
        self.latest, values = super().choose(gradient, n_images, n_ranks)
        return self.latest, values


class Counted(DataParallel):
    """Data parallelism that counts the bytes that this rank sends to add up gradients: `sent`."""

    sent = 0

    def add_up(self, flat: np.ndarray, n_images: int) -> None:
        """Replace gradients by their sum, and count; residuals for a checkpoint do not count."""
        own = self.comm.world.sent[self.rank]
        before = own.sum()
        super().add_up(flat, n_images)
        self.sent += int(own.sum() - before)


# --- what is learnt -----------------------------------------------------------------------------

# By way: what makes the compressor of a density, the rate, and whether the sum goes into momentum.
# Of rates twice the last, that of the best accuracy, the mean of 1 % and 0.3 %, of seeds 10 and 11,
# on 3,000 images held out of MNIST, trained on 8,000 others. Where all is sent, it is RATES.
RATES = {"sgd": 0.8, "momentum": 0.1}
WAYS: dict[str, tuple[Callable, float, str]] = {
    "the rest dropped": (Dropped, 1.6, "sgd"),
    "the rest kept": (Streams, 0.8, "sgd"),
    "kept, then momentum": (Streams, 0.05, "momentum"),
    "kept, warmed up": (
        lambda *of, argument: DeepGradientCompression(
            *of, f"{argument},50", momentum=0.0, clip=None
        ),
        0.8,
        "sgd",
    ),
    "DGC": (lambda *of, argument: DeepGradientCompression(*of, f"{argument},50"), 0.4, "sgd"),
}


def learnt(
    compress: str | Callable, data, rate: float, optimizer: str = "sgd", seed: int = 0,
    n_ranks: int = 4, **plan,
) -> tuple[float, int]:  # fmt: skip
    """The test accuracy of a training on virtual ranks, and the bytes that all send for sums.

    One that diverges guesses.
    """

    methods = []

    def program(comm) -> float:
        how = {"rate": rate, "optimizer": optimizer, "seed": seed} | PLAN | plan
        methods.append(method := Counted(comm, compress=compress))
        return train(data, method=method, **how).history[-1]["test_accuracy"]

    world = Counting(n_ranks)
    try:
        found = world.run(program)[0]
    except Diverged:
        found = 1 / len(data.class_names)
    return found, sum(method.sent for method in methods)


def by_density(
    densities: Sequence[float], data, ways: Sequence[str] = tuple(WAYS), seed: int = 0, **plan
) -> dict[str, dict[float, tuple[float, int]]]:
    """By way and density: accuracy and bytes, see `learnt`."""
    found = {}
    for way in ways:
        make, rate, optimizer = WAYS[way]
        found[way] = {
            density: learnt(
                functools.partial(make, argument=density), data, rate, optimizer, seed, **plan
            )
            for density in densities
        }
    return found


# --- how sums fill up ---------------------------------------------------------------------------


def filled(density: float, n_ranks: int) -> float:
    """The share of places that are taken in a sum, if each rank takes its own at random."""
    return 1 - (1 - density) ** n_ranks


def taken(choices: Sequence[np.ndarray], n: int, ranks: Sequence[int]) -> list[float]:
    """The share of n places that the first of these choices take together, for each of `ranks`."""
    return [np.unique(np.concatenate(choices[:count])).size / n for count in ranks]


def random_places(n: int, k: int, n_ranks: int, seed: int = 0) -> list[np.ndarray]:
    """k of n places for each rank, int32, ascending, at random."""
    rng = np.random.default_rng(seed)
    return [np.sort(rng.choice(n, k, replace=False)).astype(np.int32) for _ in range(n_ranks)]


def chosen_places(
    data, density: float, n_ranks: int, network: Network | None = None, n_steps: int = 30
) -> list[np.ndarray]:
    """The places that each of so many virtual ranks sends, after a few steps of training."""
    network, batch = network or Network(), 8 * n_ranks

    def program(comm) -> np.ndarray:
        method = DataParallel(comm, compress=functools.partial(Noting, argument=density))
        of = replica(network, data, batch, 0.4)
        for step in range(n_steps):
            rng = np.random.default_rng(step)
            method.step(of, rng.choice(len(data.train_labels), batch, replace=False))
        return method.compressed.chosen.latest

    return World(n_ranks).run(program)


def replica(network: Network, data, batch: int, rate: float) -> Replica:
    """What a rank trains with: the same on each."""
    held = find("vector"), network.parameters(0), data.train_images, data.train_labels
    return Replica(*held, batch, Sgd(rate))


# --- choosing -----------------------------------------------------------------------------------


def by_partition(values: np.ndarray, k: int) -> Stream:
    """The k largest with NumPy: the k-th largest by np.partition, then all that are as large."""
    size = abs(values)
    places = np.flatnonzero(size >= np.partition(size, size.size - k)[size.size - k])[:k]
    return places.astype(np.int32), values[places]


def by_argpartition(values: np.ndarray, k: int) -> Stream:
    """The k largest with NumPy: their places by np.argpartition, put in order."""
    places = np.sort(np.argpartition(abs(values), values.size - k)[values.size - k :])
    return places.astype(np.int32), values[places]


def choosing(
    sizes: Sequence[int], density: float, repeats: int = 15
) -> dict[int, Mapping[str, Timing]]:
    """By size, timings of choosing the largest of so many numbers, in turn; work: their bytes."""
    cache.keep_compiled()
    found = {}
    for n in sizes:
        values, k = (
            np.random.default_rng(n).standard_normal(n).astype(np.float32),
            round(density * n),
        )
        places, chosen = np.empty(k, np.int32), np.empty(k, np.float32)
        calls = {
            "select": functools.partial(select, values, places, chosen),
            "np.partition": functools.partial(by_partition, values, k),
            "np.argpartition": functools.partial(by_argpartition, values, k),
        }
        found[n] = measure.compare(
            calls, checks=functools.partial(same, calls, values, k), repeats=repeats, work=4 * n
        )
    return found


def same(calls: Mapping[str, Callable], values: np.ndarray, k: int, name: str) -> bool:
    """Whether one of the calls has chosen what sorting all would."""
    expected = np.sort(np.argsort(-abs(values), kind="stable")[:k])
    got = calls[name]()
    return np.array_equal(calls[name].args[1] if got is None else got[0], expected)
