"""Compressors measured: what they make of numbers, how fast, and what a training learns of it."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cnnlab.bench import measure
from cnnlab.bench.measure import Timing
from cnnlab.distributed.compressed import CompressedSum
from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.compressors.base import Compressor
from cnnlab.distributed.compressors.levels import Nearest, Qsgd
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.distributed.trial import Trial
from cnnlab.network import Network
from cnnlab.ranks import world
from cnnlab.ranks.measure import alternately
from cnnlab.ranks.virtual import World
from cnnlab.training import Diverged, train

IN_NUMPY = "qsgd4 in NumPy"
LATENCY = 50e-6  # seconds, of the networks that sums are measured on
PLAN = {"batch": 16, "rate": 0.5, "epochs": 2, "progress": False}


class InNumPy(Qsgd):
    """QSGD as one would write it in NumPy: messages of the same form, with chances of its own."""

    def pack(self, values: np.ndarray) -> np.ndarray:
        """The message for these values alone."""
        message, rng = np.empty(self.n_bytes, np.uint8), np.random.default_rng(self.n_messages)
        scales, packed = self.parts(message)
        padded = np.zeros((self.n_buckets, self.bucket), np.float32)
        padded.reshape(-1)[: self.n] = values
        scales[:] = abs(padded).max(1)
        up = np.divide(self.most, scales, out=np.zeros_like(scales), where=scales > 0)
        levels = abs(padded) * up[:, None] + rng.random(padded.shape, np.float32)
        codes = 2 * np.minimum(levels.astype(np.uint8), self.most) + (padded < 0)
        rows = codes.reshape(-1)[: self.codes.size].astype(np.uint8).reshape(8 // self.bits, -1)
        packed[:] = sum(row << np.uint8(k * self.bits) for k, row in enumerate(rows))
        return message

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        """Write what a message stands for to `values` (n)."""
        scales, packed = self.parts(message)
        shifts = np.arange(0, 8, self.bits, dtype=np.uint8)[:, None]
        codes = ((packed >> shifts) & np.uint8(2**self.bits - 1)).reshape(-1)[: self.n]
        units = np.repeat(scales / np.float32(self.most), self.bucket)[: self.n]
        np.multiply(units, (codes >> 1) * (1 - 2.0 * (codes & 1)), out=values)


def nearest(n_bits: int) -> Callable[..., Compressor]:
    """What makes a compressor to the nearest level, in 2, 4 or 8 bits."""
    return functools.partial(Nearest, argument=n_bits)


def made(way: str | Callable) -> Callable[..., Compressor]:
    """What makes a compressor: a function, one of COMPRESSORS by name, or IN_NUMPY."""
    if callable(way):
        return way
    return InNumPy if way == IN_NUMPY else compressor(way)


# --- what arrives -------------------------------------------------------------------------------


def arriving(compress: Compressor, values: np.ndarray, n_messages: int) -> np.ndarray:
    """What arrives of the same values (n), sent so many times: float32 (n_messages, n)."""
    found = np.empty((n_messages, values.size), np.float32)
    for row in found:
        compress.decode(compress.encode(values), row)
    return found


def bits_a_number(compress: str | Callable, n: int) -> float:
    """The bits of a message over its n numbers, scales and all."""
    return 8 * made(compress)(n).n_bytes / n


# --- how fast -----------------------------------------------------------------------------------


def rate_that_pays(compress: str | Callable, n: int, n_ranks: int, bandwidth: float) -> float:
    """Bytes of float32 a second to encode and decode at, so that a sum of n numbers gains nothing.

    Of each shard, a rank encodes P + 1 and decodes 2P, and sends 2 (P − 1) in fewer bits.
    """
    saved = 1 - bits_a_number(compress, -(-n // n_ranks)) / 32
    return bandwidth * (3 * n_ranks + 1) / (2 * (n_ranks - 1) * saved)


def speeds(ways: Sequence[str], n: int, repeats: int = 15) -> dict[str, dict[str, Timing]]:
    """Timings of encoding and of decoding n float32 on one core, beside copying them: "copy".

    Their work is the bytes of the float32, so that `rate` is in bytes of those a second.
    """
    values = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    out, calls = np.empty_like(values), {}
    for way in ways:
        one = made(way)(n)
        calls[way, "encode"] = functools.partial(one.encode, values)
        calls[way, "decode"] = functools.partial(one.decode, one.encode(values), out)
    calls["copy", ""] = functools.partial(np.copyto, out, values)
    found = measure.compare(calls, repeats=repeats, work=4 * n)
    copied = found.pop(("copy", ""))
    by_way = {way: {do: found[way, do] for do in ("encode", "decode")} for way in ways}
    return {"copy": {"encode": copied, "decode": copied}} | by_way


# --- sums on a network --------------------------------------------------------------------------


class Cost(NamedTuple):
    """What one message of a shard costs: its bytes, and the seconds to encode and decode it."""

    n_bytes: int
    encode: float
    decode: float

    def work(self, n_ranks: int) -> float:
        """Seconds of encoding and decoding on each rank: P shards and a sum, and 2P messages."""
        return (n_ranks + 1) * self.encode + 2 * n_ranks * self.decode

    def seconds(self, n_ranks: int, bandwidth: float, latency: float = LATENCY) -> float:
        """A whole sum, predicted: 2 (P − 1) messages out and in, one after the other."""
        each = latency + self.n_bytes / bandwidth
        return self.work(n_ranks) + 2 * (n_ranks - 1) * each


def crossover(whole: Cost, short: Cost, n_ranks: int) -> float:
    """The bandwidth, in bytes a second, below which short messages pay: bytes over seconds."""
    saved = 2 * (n_ranks - 1) * (whole.n_bytes - short.n_bytes)
    more = short.work(n_ranks) - whole.work(n_ranks)
    return saved / more if more > 0 else np.inf


def sums(
    ways: Sequence[str], n: int, bandwidths: Sequence[float], repeats: int = 9
) -> tuple[dict[str, Cost], dict[float, dict[str, list[float]]]]:
    """On each rank of a cluster: the cost of a message by way; samples of sums by bandwidth, way.

    Costs are measured while all ranks are at it. Sums are of n float32 on the slowed network.
    """
    from cnnlab.ranks.slow import network

    comm, costs, found = world(), {}, {}
    flat = np.random.default_rng(comm.rank).standard_normal(n).astype(np.float32)
    shard = flat[: -(-n // comm.size)].copy()
    for way in ways:
        one, out = made(way)(shard.size), np.empty_like(shard)
        message = one.encode(shard)
        calls = {
            "encode": functools.partial(one.encode, shard),
            "decode": functools.partial(one.decode, message, out),
        }
        taken = alternately(comm, calls, repeats)
        costs[way] = Cost(one.n_bytes, *(float(np.median(of)) for of in taken.values()))
    for bandwidth in bandwidths:
        with network(LATENCY, bandwidth, comm) as slowed:
            calls = {way: adding(CompressedSum(slowed, made(way)), flat) for way in ways}
            found[bandwidth] = alternately(comm, calls, repeats)
    return costs, found


def steps(
    ways: Sequence[str], network: str, bandwidth: float, repeats: int = 15
) -> dict[str, list[float]]:
    """On each rank of a cluster: samples of seconds of a step on 64 images, by way, in turn.

    `network` is one of NETWORKS; messages are slowed to the bandwidth.
    """
    from cnnlab.ranks.slow import network as slow

    comm = world()
    with slow(LATENCY, bandwidth, comm) as slowed:
        tried = {way: Trial(slowed, "data", network, compress=made(way)) for way in ways}
        return alternately(comm, {way: trial.step for way, trial in tried.items()}, repeats)


def adding(method: CompressedSum, flat: np.ndarray) -> Callable[[], None]:
    """A call that adds up the same numbers each time."""
    work = np.empty_like(flat)

    def call() -> None:
        work[:] = flat
        method.add_up(work)

    return call


def crossed(bandwidths: Sequence[float], whole: Sequence[float], short: Sequence[float]) -> float:
    """The bandwidth at which measured seconds cross, between two of them; NaN if they do not.

    `whole` and `short` are seconds at rising bandwidths; between two, all are taken as straight in
    the logarithm of both.
    """
    gap, x = np.log(np.array(short) / whole), np.log(bandwidths)
    for k in range(len(x) - 1):
        if gap[k] < 0 <= gap[k + 1]:
            return float(np.exp(np.interp(0, gap[k : k + 2], x[k : k + 2])))
    return float("nan")


def in_range(bandwidth: float) -> str:
    """A bandwidth at which two ways cross, in words; NaN is none."""
    return "beyond these bandwidths" if np.isnan(bandwidth) else f"{bandwidth / 1e6:,.0f} MB/s"


def crossings(
    costs: Mapping[str, Cost], found: Mapping[float, Mapping[str, Sequence[float]]], n_ranks: int
) -> dict[str, tuple[float, float]]:
    """By way, the bandwidth below which it beats the first one: predicted, and measured."""
    first, *others = costs
    rates = sorted(found)
    seconds = {way: [float(np.median(found[rate][way])) for rate in rates] for way in costs}
    return {
        way: (
            crossover(costs[first], costs[way], n_ranks),
            crossed(rates, seconds[first], seconds[way]),
        )
        for way in others
    }


# --- what is learnt -----------------------------------------------------------------------------


def learnt(compress: str | Callable, data, n_ranks: int = 4, seed: int = 0, **plan) -> list[dict]:
    """The history of a training on so many virtual ranks; empty where it diverged."""

    def program(comm) -> list[dict]:
        method = DataParallel(comm, compress=compress)
        return train(data, method=method, seed=seed, **PLAN | plan).history

    try:
        return World(n_ranks).run(program)[0]
    except Diverged:
        return []


def accuracies(
    ways: Mapping[str, str | Callable],
    data,
    seeds: Sequence[int] = (0, 1),
    n_ranks: int = 4,
    **plan,
) -> dict[str, tuple[float, list[float]]]:
    """By way, its bits a number and the test accuracy of each seed; who diverged guesses.

    Bits are those of a message, which has the shard of one of the ranks.
    """
    shard, guess = -(-Network().zeros().flat.size // n_ranks), 1 / len(data.class_names)
    found = {}
    for name, compress in ways.items():
        runs = [learnt(compress, data, n_ranks, seed, **plan) for seed in seeds]
        ends = [rows[-1]["test_accuracy"] if rows else guess for rows in runs]
        found[name] = bits_a_number(compress, shard), ends
    return found
