"""The exercises of lesson 56."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from cnnlab.check import kinds
from cnnlab.check.verdict import Verdict
from cnnlab.distributed.compression import CompressedSum
from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.compressors.base import Compressor
from cnnlab.distributed.compressors.bits import Nearest, Qsgd
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.distributed.trial import Trial
from cnnlab.kernels import find
from cnnlab.measure import timing
from cnnlab.measure.timing import Timing
from cnnlab.network import Network, Parameters
from cnnlab.plots.style import GREY, INK, as_rows, colors, figure, label_ends, measured, note
from cnnlab.ranks import world
from cnnlab.ranks.measure import alternately
from cnnlab.ranks.virtual import World
from cnnlab.training import Diverged, Replica, Sgd, train
from cnnlab.training.loop import predict

N_MESSAGES = 2000


def as_rounding(rounding) -> str:
    """What is wrong with a rounding to whole numbers by chance, in words; nothing if right."""
    values = np.array([0.2, 0.5, 0.9, -0.2, -0.9, 3.0, -4.0, 0.0, -2.7, 11.1], np.float32)
    once = np.asarray(rounding(values.copy(), np.full(values.shape, 0.5)))
    if once.shape != values.shape:
        return f"expected shape {values.shape}, got {once.shape}"
    result = tried(rounding, values, N_MESSAGES)
    if (result != np.round(result)).any():
        return f"expected whole numbers, got {result[result != np.round(result)][0]:.6g}"
    if (result == result[0]).all():
        return "all messages are the same: chances do not count"
    verdict = unbiased("rounding", result, values, 1.0)
    return "" if verdict else verdict.text


def as_feedback(step) -> str:
    """What is wrong with a step of error feedback, in words; nothing if it is right."""
    rng = kinds.generator()
    residual, given, arrived = np.zeros(8), np.zeros(8), np.zeros(8)
    for _ in range(50):
        g = rng.normal(size=8) + 0.2
        kept, before = g.copy(), residual.copy()
        quantised = []

        def quantise(x, quantised=quantised):
            quantised.append(np.array(x))
            return np.where(np.asarray(x) < 0, -1.0, 1.0)

        sent = step(g, residual, quantise)
        if not np.array_equal(g, kept):
            return "g is changed, and should be left as it is"
        if len(quantised) != 1:
            return f"quantise: expected one call, got {len(quantised)}"
        given, arrived = given + g, arrived + np.asarray(sent)
        if wrong := of_feedback(g, before, residual, quantised[0], np.asarray(sent)):
            return wrong
    if not np.allclose(arrived + residual, given):
        return "what has arrived and the residual do not add up to what was given"
    return ""


def of_feedback(g, before, after, quantised, sent) -> str:
    """What is wrong with one step: what was quantised and kept."""
    if np.allclose(quantised, g) and before.any():
        return "g is quantised without the residual: add it before, not after"
    if not np.allclose(quantised, g + before):
        return "expected g + residual to be quantised"
    if not np.allclose(sent, np.where(quantised < 0, -1.0, 1.0)):
        return "expected what quantise returned to be sent"
    if np.array_equal(after, before):
        return "the residual has not changed: change it in place"
    if np.allclose(after, g - sent) and before.any():
        return "the old residual is lost: keep g + residual - sent"
    if np.allclose(after, sent - quantised):
        return "the residual has the wrong sign"
    return "" if np.allclose(after, quantised - sent) else "the residual is not what was not sent"


def as_unpack(unpack) -> str:
    """What is wrong with unpacking codes, in words; nothing if it is right."""
    for bits in (4, 2, 1, 8):
        m, mask = 5, 2**bits - 1
        packed = kinds.generator().integers(0, 256, m).astype(np.uint8)
        rows = [(packed.astype(int) >> k * bits) & mask for k in range(8 // bits)]
        got = np.asarray(unpack(packed.copy(), bits))
        if got.shape != (m * 8 // bits,):
            return f"bits={bits}: expected {m * 8 // bits} codes, got shape {got.shape}"
        if np.array_equal(got, np.concatenate(rows)):
            continue
        if np.array_equal(got, np.stack(rows, 1).reshape(-1)):
            return f"bits={bits}: codes of a byte are not neighbours: byte i has i, i + m, …"
        if (got > mask).any():
            return f"bits={bits}: expected codes up to {mask}, got {got.max()}: mask them"
        k = int(np.argmax(got != np.concatenate(rows)))
        return f"bits={bits}: code {k}: expected {np.concatenate(rows)[k]}, got {got[k]}"
    return ""


def as_bfloat16(rounding) -> str:
    """What is wrong with a rounding to bfloat16 by chance, in words; nothing if it is right."""
    rng = kinds.generator()
    values = np.append(rng.normal(size=12), [0.0, 1.0, -1.0, 1e-3, 1 + 2**-9]).astype(np.float32)
    rows = []
    for _ in range(N_MESSAGES):
        chances = rng.integers(0, 1 << 16, values.shape).astype(np.uint32)
        got = np.asarray(rounding(values.copy(), chances))
        if got.dtype != np.float32:
            return f"expected float32, got {got.dtype}: view the bits as numbers again"
        rows.append(got)
    result = np.array(rows)
    if (result.view(np.uint32) & np.uint32(0xFFFF)).any():
        return "the lower 16 bits are not all zero: no bfloat16"
    if (result == result[0]).all():
        return "all messages are the same: chances do not count"
    unit = 2.0 ** (np.floor(np.log2(np.maximum(abs(values), 2.0**-126))) - 7)
    verdict = unbiased("bfloat16", result, values, unit)
    return "" if verdict else verdict.text


@kinds.formula(
    lambda rng: {
        "n": int(rng.integers(1, 100_000)),
        "bits": int(rng.choice([1, 2, 4, 8])),
        "bucket": int(rng.choice([64, 512, 4096])),
    },
    "Buckets come in whole numbers, and so do bytes.",
    "4 bytes for each scale; then n · bits, over 8, rounded up.",
)
def message_bytes(n, bits, bucket):
    """A scale for each bucket, the last of which may be short, and then the packed codes."""
    return 4 * -(-n // bucket) + -(-n * bits // 8)


@kinds.tested(
    as_rounding,
    "A value of 0.3 should become 1 for three chances in ten: those from 0.7 on, say.",
    "floor rounds down also below zero; what does it make of value + chance?",
)
def by_chance(values, chances):
    """value + chance passes the next whole number as often as value is near it."""
    return np.floor(values + chances)


@kinds.tested(
    as_unpack,
    "Shift by 0, bits, 2 · bits, …, and mask: one row of codes for each shift.",
    "The first m codes are the lowest bits of the m bytes, the next m those above.",
)
def unpack(packed, bits):
    """A row of codes for each shift; the rows one after the other."""
    rows = [(packed >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.concatenate(rows)


@kinds.tested(
    as_feedback,
    "Three lines: add, quantise, subtract.",
    "residual += g; what is quantised then is the residual itself, before anything is taken off.",
)
def feedback(g, residual, quantise):
    """All that was ever given has either been sent, or waits in the residual."""
    residual += g
    sent = quantise(residual)
    residual -= sent
    return sent


@kinds.formula(
    lambda rng: {
        "bits": int(rng.choice([1, 2, 4, 8, 16])),
        "encode": float(rng.uniform(0.1, 10) * 1e9),
        "decode": float(rng.uniform(0.1, 30) * 1e9),
        "n_ranks": int(rng.integers(2, 65)),
    },
    "Count for one number of a shard: bytes saved by 2 (P − 1) messages, seconds of work more.",
    "Saved: 2 (P − 1) (4 − bits / 8). Work: P + 1 encodings and 2 P decodings of 4 bytes each.",
)
def pays_below(bits, encode, decode, n_ranks):
    """The bytes that are saved, over the seconds that this takes; n cancels out."""
    saved = 2 * (n_ranks - 1) * (4 - bits / 8)
    return saved / (4 * (n_ranks + 1) / encode + 4 * 2 * n_ranks / decode)


@kinds.tested(
    as_bfloat16,
    "bfloat16 is the upper half of a float32: view(np.uint32) shows all 32 bits.",
    "Add a chance of 16 bits to the bits, and the carry rounds up as often as it should.",
)
def bfloat16(values, chances):
    """The carry out of the lower half is the rounding; it works for both signs."""
    bits = values.view(np.uint32) + chances
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


# --- whether what is rounded by chance is right in the mean: told from many messages --------------

# Standard errors that a mean may be off: of a million numbers that are right, not one is.
MOST = 6


def unbiased(name: str, result: np.ndarray, sent: np.ndarray, unit: np.ndarray | float) -> Verdict:
    """Whether what arrived, (M, n) of M messages, has the mean that was sent (n).

    `unit` is the distance between two levels: a number rounded to the one below or above it has at
    most the variance unit² / 4. Also wrong is a number that lands further off than a unit.
    """
    unit = np.broadcast_to(np.asarray(unit, np.float64), sent.shape)
    if not np.isfinite(result).all():
        return Verdict(
            False, f"{name}: expected finite numbers, {(~np.isfinite(result)).sum()} not"
        )
    far = np.abs(result - sent).max(0)
    if (far > unit * (1 + 1e-5)).any():
        k = int(np.argmax(far / unit))
        text = f"{sent[k]:.4g} arrived {far[k]:.4g} off; its levels are {unit[k]:.4g} apart"
        return Verdict(False, f"{name}: {text}")
    off = np.abs(result.mean(0, dtype=np.float64) - sent) / (unit / 2 / len(result) ** 0.5)
    k = int(np.argmax(off))
    text = f"the mean of {len(result):,} messages is at most {off[k]:.1f} standard errors off"
    if off[k] < MOST:
        return Verdict(True, f"{name}: {text}")
    mean = result[:, k].mean(dtype=np.float64)
    return Verdict(False, f"{name}: of {sent[k]:.4g} arrives {mean:.4g} in the mean; {text}")


def tried(rounding: Callable, values: np.ndarray, n_messages: int, seed: int = 0) -> np.ndarray:
    """What `rounding(values, chances)` makes of the same values, with chances in [0, 1)."""
    rng = np.random.default_rng(seed)
    rows = [rounding(values.copy(), rng.random(values.shape)) for _ in range(n_messages)]
    return np.array(rows, np.float64)


# --- training with weights on a grid: what rounding them after each step leaves of the steps ------

Rounding = Callable[[np.ndarray, np.ndarray], np.ndarray]


class OnGrid(Sgd):
    """Plain descent whose weights are rounded to multiples of `unit` after each step.

    `rounding(values, chances)` rounds float32 to whole numbers; chances lie in [0, 1).
    """

    loop = None

    def __init__(self, rate: float, unit: float, rounding: Rounding, seed: int = 0):
        super().__init__(rate)
        self.unit, self.rounding = unit, rounding
        self.rng = np.random.default_rng(seed)

    def update(self, params: Parameters, grads: Parameters, n_images: int) -> None:
        """Step along gradients summed over `n_images`, then round."""
        super().update(params, grads, n_images)
        chances = self.rng.random(params.flat.shape, np.float32)
        params.flat[:] = self.rounding(params.flat / self.unit, chances) * self.unit


def accuracy(
    data, optimizer: Sgd, *, epochs: int = 2, batch: int = 16, seed: int = 0, kernels="vector"
) -> float:
    """The test accuracy after some epochs on one core."""
    strategy, params = find(kernels), Network().parameters(seed)
    images, labels = data.train_images, data.train_labels
    group = Replica(strategy, params, images, labels, batch, optimizer)
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(len(images))
        for chosen in group.batches(order):
            group.gradients(chosen)
            group.update(len(chosen))
    return float((predict(strategy, params, data.test_images) == data.test_labels).mean())


# --- compressors measured -------------------------------------------------------------------------

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
    result = np.empty((n_messages, values.size), np.float32)
    for row in result:
        compress.decode(compress.encode(values), row)
    return result


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


def speeds(algorithms: Sequence[str], n: int, repeats: int = 15) -> dict[str, dict[str, Timing]]:
    """Timings of encoding and of decoding n float32 on one core, beside copying them: "copy".

    Their work is the bytes of the float32, so that `rate` is in bytes of those a second.
    """
    values = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    out, calls = np.empty_like(values), {}
    for way in algorithms:
        one = made(way)(n)
        calls[way, "encode"] = functools.partial(one.encode, values)
        calls[way, "decode"] = functools.partial(one.decode, one.encode(values), out)
    calls["copy", ""] = functools.partial(np.copyto, out, values)
    result = timing.compare(calls, repeats=repeats, work=4 * n)
    copied = result.pop(("copy", ""))
    by_way = {way: {do: result[way, do] for do in ("encode", "decode")} for way in algorithms}
    return {"copy": {"encode": copied, "decode": copied}} | by_way


# --- sums on a network --------------------------------------------------------------------------


class Price(NamedTuple):
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


def crossover(whole: Price, short: Price, n_ranks: int) -> float:
    """The bandwidth, in bytes a second, below which short messages pay: bytes over seconds."""
    saved = 2 * (n_ranks - 1) * (whole.n_bytes - short.n_bytes)
    more = short.work(n_ranks) - whole.work(n_ranks)
    return saved / more if more > 0 else np.inf


def sums(
    algorithms: Sequence[str], n: int, bandwidths: Sequence[float], repeats: int = 9
) -> tuple[dict[str, Price], dict[float, dict[str, list[float]]]]:
    """On each rank of a cluster: the cost of a message by way; samples of sums by bandwidth, way.

    Costs are measured while all ranks are at it. Sums are of n float32 on the slowed network.
    """
    from cnnlab.ranks.slow import network

    comm, costs, result = world(), {}, {}
    flat = np.random.default_rng(comm.rank).standard_normal(n).astype(np.float32)
    shard, work = flat[: -(-n // comm.size)].copy(), np.empty_like(flat)
    for way in algorithms:
        one, out = made(way)(shard.size), np.empty_like(shard)
        message = one.encode(shard)
        calls = {
            "encode": functools.partial(one.encode, shard),
            "decode": functools.partial(one.decode, message, out),
        }
        taken = alternately(comm, calls, repeats)
        costs[way] = Price(one.n_bytes, *(float(np.median(group)) for group in taken.values()))
    for bandwidth in bandwidths:
        with network(LATENCY, bandwidth, comm) as slowed:
            calls = {
                way: functools.partial(again, CompressedSum(slowed, made(way)).add_up, flat, work)
                for way in algorithms
            }
            result[bandwidth] = alternately(comm, calls, repeats)
    return costs, result


def steps(
    algorithms: Sequence[str], network: str, bandwidth: float, repeats: int = 15
) -> dict[str, list[float]]:
    """On each rank of a cluster: samples of seconds of a step on 64 images, by way, in turn.

    `network` is one of NETWORKS; messages are slowed to the bandwidth.
    """
    from cnnlab.ranks.slow import network as slow

    comm = world()
    with slow(LATENCY, bandwidth, comm) as slowed:
        tried = {way: Trial(slowed, "data", network, compress=made(way)) for way in algorithms}
        return alternately(comm, {way: trial.step for way, trial in tried.items()}, repeats)


def again(add_up: Callable, values: np.ndarray, flat: np.ndarray) -> None:
    """Add up the same values once more, in `flat`."""
    flat[:] = values
    add_up(flat)


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
    costs: Mapping[str, Price], result: Mapping[float, Mapping[str, Sequence[float]]], n_ranks: int
) -> dict[str, tuple[float, float]]:
    """By way, the bandwidth below which it beats the first one: predicted, and measured."""
    first, *others = costs
    rates = sorted(result)
    seconds = {way: [float(np.median(result[rate][way])) for rate in rates] for way in costs}
    return {
        way: (
            crossover(costs[first], costs[way], n_ranks),
            crossed(rates, seconds[first], seconds[way]),
        )
        for way in others
    }


# --- what is learnt -----------------------------------------------------------------------------


def learnt(compress: str | Callable, data, n_ranks: int = 4, seed: int = 0, **plan) -> float:
    """The test accuracy after a training on so many virtual ranks; one that diverges guesses."""

    def program(comm) -> float:
        method = DataParallel(comm, compress=compress)
        how = PLAN | {"seed": seed} | plan
        return train(data, method=method, **how).history[-1]["test_accuracy"]

    try:
        return World(n_ranks).run(program)[0]
    except Diverged:
        return 1 / len(data.class_names)


def accuracies(
    algorithms: Mapping[str, str | Callable], data, seeds=(0, 1), n_ranks: int = 4, **plan
) -> dict[str, tuple[float, list[float]]]:
    """By way, its bits a number and the test accuracy of each seed, see `learnt`.

    Bits are those of a message, which has the shard of one of the ranks.
    """
    shard = -(-Network().zeros().flat.size // n_ranks)
    return {
        name: (
            bits_a_number(compress, shard),
            [learnt(compress, data, n_ranks, seed, **plan) for seed in seeds],
        )
        for name, compress in algorithms.items()
    }


# --- the challenge of few bits --------------------------------------------------------------------

N = 1000  # numbers of a message that is looked at


def said(mine: Callable) -> str:
    """What is wrong with a compressor's messages, in words; nothing if they can be sent."""
    values = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    sender, reader, out = mine(N, 1), mine(N, 2), np.empty(N, np.float32)
    message = np.asarray(sender.encode(values))
    if message.dtype != np.uint8 or message.shape != (sender.n_bytes,):
        return f"message: expected uint8 ({sender.n_bytes},), got {message.dtype} {message.shape}"
    reader.decode(message.copy(), out)
    if not np.isfinite(out).all():
        return "decode: expected finite numbers, some are not, or were never written"
    again = np.empty_like(out)
    sender.decode(message, again)
    if not np.array_equal(out, again):
        return "decode: a rank that has not encoded the message reads other numbers from it"
    return ""


def challenge_bits(mine: Callable, data, goal: float, best: float) -> float | None:
    """Train with a compressor and say how many bits a number it sends; `best` is to be beaten.

    `mine(n, seed)` makes one, with the interface of `Compressor`; ... is not yet one. `goal` is a
    test accuracy, the mean of two seeds. Returns the bits, None where the goal was missed.
    """
    if not callable(mine):
        print("challenge: not yet answered")
        return None
    if wrong := said(mine):
        print(f"✗ {wrong}")
        return None
    bits, ends = accuracies({"mine": mine}, data)["mine"]
    reached = float(np.mean(ends))
    if reached < goal:
        print(f"✗ {bits:.2f} bits a number and {reached:.1%}; the goal is {goal:.1%}")
        return None
    side = "fewer than" if bits < best else "not fewer than"
    print(f"✓ {bits:.2f} bits a number and {reached:.1%}: {side} {best:.2f}")
    return bits


# --- compressors as pictures: what arrives, how fast they are, when they pay, what is learnt ------


@figure
def arrivals(result: Mapping[str, np.ndarray], sent: float) -> Axes:
    """Draw the mean of what has arrived of one number over the messages, and the number itself."""
    _, ax = plt.subplots(figsize=(6.5, 2.6))
    labels = []
    for (name, group), color in zip(result.items(), colors(list(result)), strict=True):
        n = np.arange(1, len(group) + 1)
        means = np.cumsum(group, dtype=np.float64) / n
        ax.plot(n, means, color=color, linewidth=1.5)
        labels.append((n[-1], means[-1], name, color))
    ax.axhline(sent, color=GREY, linestyle="--", linewidth=1.2)
    labels.append((n[-1], sent, "what was sent", GREY))
    ax.set(xscale="log", xlabel="messages", ylabel="mean of what arrived")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def walks(result: Mapping[str, np.ndarray], goal: float) -> Axes:
    """Draw where each way has gone after so many steps, and where the mean gradient leads."""
    _, ax = plt.subplots(figsize=(6.5, 2.6))
    labels = []
    lines = zip(result.items(), colors(list(result)), strict=True)
    for k, ((name, group), color) in enumerate(lines):
        width = 1.5 * (len(result) - k)  # so that one shows under the next
        ax.plot(group, color=color, linewidth=width)
        labels.append((len(group) - 1, group[-1], name, color))
    ax.plot([0, len(group) - 1], [0, goal], "--", color=INK, linewidth=1.2)
    labels.append((len(group) - 1, goal, "the mean gradient", INK))
    ax.set(xlabel="steps", ylabel="x")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@measured
def bits_speeds(
    result: Mapping[str, Mapping[str, Timing]], needed: Mapping[str, float], *, link: str
) -> Axes:
    """Draw GB/s of float32 encoded and decoded, and what pays on a link of that name.

    The first of `result` is there for comparison: a copy. `needed`, by way, is in bytes a second.
    """
    copy, *names = result
    _, ax = plt.subplots(figsize=(7, 1.4 + 0.4 * len(names)))
    y = np.arange(len(names))
    parts = {"encode": -0.19, "decode": 0.19}
    for (do, shift), color in zip(parts.items(), colors(list(parts)), strict=True):
        rates = [result[name][do].rate / 1e9 for name in names]
        ax.plot(rates, y + shift, "o", color=color, label=do)
    marks = [needed[name] / 1e9 for name in names]
    ax.plot(marks, y, "|", color=INK, markersize=20, markeredgewidth=2, label=f"pays on {link}")
    most = result[copy]["encode"].rate / 1e9
    ax.axvline(most, color=GREY, linestyle="--", linewidth=1.2, label=f"{copy}: {most:.3g}")
    for place, name, mark in zip(y, names, marks, strict=True):
        does = ", ".join(f"{do} {result[name][do].rate / 1e9:.3g}" for do in parts)
        at = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 8}
        ax.annotate(f"{does}\npays from {mark:.3g}", (1.02, place), **at)
    ax.set_yticks(y, names)
    ax.set(xscale="log", xlabel="GB/s of float32 on one core")
    low, high = ax.get_xlim()
    low = min(low, min(marks) / 2)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_xlim(low, high)
    ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=8)
    return as_rows(ax, names)


@measured
def bits_sums(
    costs: Mapping[str, Price], result: Mapping[float, Mapping[str, Sequence[float]]], n_ranks: int
) -> Axes:
    """Draw seconds of a sum over the bandwidth: lines are predicted, dots measured, and joined.

    At a star, the first way is predicted to catch up. `costs` and `result` are those of
    `bench.bits.sums`.
    """
    _, ax = plt.subplots(figsize=(6.5, 3.4))
    rates, labels = sorted(result), []
    fine = np.geomspace(rates[0], rates[-1], 60)
    first = next(iter(costs))
    for (way, cost), color in zip(costs.items(), colors(list(costs)), strict=True):
        line = 1e3 * np.array([cost.seconds(n_ranks, rate) for rate in fine])
        medians = 1e3 * np.array([np.median(result[rate][way]) for rate in rates])
        ax.plot(fine / 1e6, line, color=color, linewidth=1.2)
        ax.plot(np.array(rates) / 1e6, medians, "o:", color=color, markersize=4, linewidth=0.8)
        labels.append((fine[-1] / 1e6, line[-1], way, color))
        at = crossover(costs[first], cost, n_ranks) if way != first else np.inf
        if rates[0] < at < rates[-1]:
            ax.plot(at / 1e6, 1e3 * cost.seconds(n_ranks, at), "*", color=color, markersize=14)
    ax.set(xscale="log", yscale="log", xlabel="bandwidth (MB/s)", ylabel="ms a sum")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def accuracy_by_bits(result: Mapping[str, tuple[float, Sequence[float]]]) -> Axes:
    """Draw the test accuracy over the bits a number; rings are seeds, grey where none learns."""
    _, ax = plt.subplots(figsize=(6.5, 3.2))
    ax.set(xscale="log", xlabel="bits sent for a number", ylabel="test accuracy", ylim=(-0.12, 1))
    ax.set_xlim(0.7, 45)
    ax.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.figure.canvas.draw()  # limits are final now
    for (name, (bits, ends)), color in zip(result.items(), colors(list(result)), strict=True):
        color = color if max(ends) > 0.5 else GREY
        ax.plot([bits] * len(ends), ends, "o", color=color, fillstyle="none")
        below(ax, name, (bits, min(ends)), color)
    return ax


def below(ax: Axes, text: str, at: tuple[float, float], color: str) -> None:
    """Write text below a point, as far down as it must be to touch no text that is there.

    The limits of the axes must be final.
    """
    there = [other.get_window_extent() for other in ax.texts]
    note(ax, text, at, (0, -14), ha="center", fontsize=8, color=color)
    while any(ax.texts[-1].get_window_extent().overlaps(box) for box in there):
        ax.texts[-1].xyann = 0, ax.texts[-1].xyann[1] - 2
