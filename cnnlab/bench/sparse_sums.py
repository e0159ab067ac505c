"""Ways to add up gradients of which few numbers count: bytes and time, in both worlds."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cnnlab.bench import measure
from cnnlab.bench.streams import replica
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.distributed.stream_sum import summing
from cnnlab.distributed.trial import Counting
from cnnlab.network import Dense, Network, Sigmoid
from cnnlab.ranks import sparse, world
from cnnlab.ranks.measure import alternately
from cnnlab.ranks.virtual import World

WHOLE = "whole"  # a plain allreduce, uncompressed
PERCEPTRON = Network((Dense(256), Sigmoid(), Dense(10), Sigmoid()))


class Sum(NamedTuple):
    """One sum over ranks: the bytes that a rank sends, in the mean, and the seconds it takes."""

    n_bytes: float
    seconds: float


def add_up(comm, way: str, n: int) -> None:
    """A rank's part in adding up n float32, drawn by its number, in the way that is named."""
    flat = np.random.default_rng(comm.rank).standard_normal(n).astype(np.float32)
    adder(comm, way)(flat)


def adder(comm, way: str) -> Callable[[np.ndarray], None]:
    """What adds up float32 (n) over the ranks, in place."""
    if way == WHOLE:
        return lambda flat: comm.Allreduce(flat.copy(), flat)
    return summing(comm, way).add_up


def sums(
    ways: Sequence[str], n: int, ranks: Sequence[int], network: str
) -> dict[str, dict[int, Sum]]:
    """By way and virtual ranks, a sum of n numbers on such links; computing takes no time."""
    found: dict[str, dict[int, Sum]] = {way: {} for way in ways}
    for way in ways:
        for n_ranks in ranks:
            counting = Counting(n_ranks, network)
            counting.run(add_up, way, n)
            found[way][n_ranks] = Sum(float(counting.sent.sum(1).mean()), counting.seconds)
    return found


def stream_bytes(n: int, k: int, n_ranks: int) -> float:
    """What a rank of 2^r sends in r rounds of streams, predicted for places taken at random."""
    total, share = 0.0, k / n
    for _ in range(n_ranks.bit_length() - 1):
        total += 4 + min(8 * share * n, 4 * n)
        share = 1 - (1 - share) ** 2
    return total


def counted_bytes(choices: Sequence[np.ndarray], n: int) -> float:
    """What a rank sends if each has chosen such places, int32, of n: the mean, counted."""

    def program(comm) -> int:
        places, total = choices[comm.rank], np.empty(n, np.float32)
        return sparse.allreduce(comm, places, np.ones(places.size, np.float32), total)

    return float(np.mean(World(len(choices)).run(program)))


# --- steps of a perceptron ----------------------------------------------------------------------


def stepping(comm, compress: str, data, batch: int) -> Callable[[], float]:
    """A rank's call that takes a step of PERCEPTRON on the same images each time."""
    of = replica(PERCEPTRON, data, batch, 0.1)
    method = DataParallel(comm, compress=None if compress == WHOLE else compress)
    return functools.partial(method.step, of, np.arange(batch))


class Echo:
    """A rank of so many whose partners send back what it has sent: all of its work, no network."""

    rank = 0

    def __init__(self, size: int):
        self.size = size

    def Sendrecv(self, sent, dest, sendtag, received, source, recvtag) -> None:
        """Receive what was sent."""
        received[...] = sent

    def Allreduce(self, sent, received) -> None:
        """Add up once: in an allreduce a rank adds (P − 1)/P of the numbers."""
        np.add(sent, sent, out=received)


class Step(NamedTuple):
    """Seconds of a rank's step: computing, what choosing and adding take, and the messages."""

    compute: float
    work: float
    messages: float

    @property
    def seconds(self) -> float:
        """The whole step."""
        return sum(self)


def virtual_steps(
    ways: Sequence[str], data, n_ranks: int, networks: Sequence[str], batch: int
) -> dict[str, dict[str, Step]]:
    """By network and way, a step of PERCEPTRON on virtual ranks.

    What a rank computes is measured here, on one core, in turns; its messages take virtual time.
    """
    of, share = replica(PERCEPTRON, data, batch, 0.1), np.arange(batch // n_ranks)
    flat, calls = of.grads.flat, {"compute": lambda: (of.gradients(share), of.update(batch))}
    noise = np.random.default_rng(0).standard_normal(flat.size).astype(np.float32)
    for way in ways:
        calls[way] = functools.partial(again, adder(Echo(n_ranks), way), noise, flat)
    medians = {name: timing.median for name, timing in measure.compare(calls).items()}
    return {
        network: {
            way: Step(medians["compute"], medians[way], found[n_ranks].seconds)
            for way, found in sums(ways, flat.size, (n_ranks,), network).items()
        }
        for network in networks
    }


def again(add: Callable, values: np.ndarray, flat: np.ndarray) -> None:
    """Add up the same values once more."""
    flat[:] = values
    add(flat)


def real_steps(
    ways: Sequence[str], data, latency: float, bandwidth: float, batch: int, repeats: int = 9
) -> dict[str, list[float]]:
    """On each rank of a cluster: samples of seconds of a step, by way in turn, messages slowed."""
    from cnnlab.ranks.slow import network

    with network(latency, bandwidth, world()) as slowed:
        calls = {way: stepping(slowed, way, data, batch) for way in ways}
        return alternately(slowed.comm, calls, repeats)


def gains(seconds: Mapping[str, float]) -> dict[str, float]:
    """By way, how many times as fast as WHOLE."""
    return {way: seconds[WHOLE] / of for way, of in seconds.items() if way != WHOLE}
