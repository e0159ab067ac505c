"""The exercises of lesson 57."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.distributed.compression import summing
from cnnlab.distributed.compressors.topk import DeepGradientCompression, Stream, Streams, select
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.distributed.trial import Counting
from cnnlab.kernels import find
from cnnlab.measure import timing
from cnnlab.measure.timing import Timing
from cnnlab.network import Dense, Network, Sigmoid
from cnnlab.plots.style import GREY, aside, colors, figure, label_ends
from cnnlab.ranks import sparse, world
from cnnlab.ranks.measure import alternately
from cnnlab.ranks.virtual import World
from cnnlab.runtime import files
from cnnlab.training import Diverged, Replica, Sgd, train

N, K, STEPS, MOMENTUM = 12, 3, 8, 0.9


def corrected(
    gradients, momentum=MOMENTUM, *, add=True, velocity_goes=True, residual_goes=True,
    group="velocity", by=abs,
):  # fmt: skip
    """What Deep Gradient Compression sends, step by step, and what is owed; or a wrong one."""
    velocity, remainder, sent = np.zeros(N), np.zeros(N), []
    for gradient in gradients:
        velocity = momentum * velocity + gradient
        remainder = add * remainder + (velocity if group == "velocity" else gradient)
        places = np.sort(np.argsort(-by(remainder), kind="stable")[:K])
        sent.append((places, remainder[places]))
        if residual_goes:
            remainder[places] = 0
        if velocity_goes:
            velocity[places] = 0
    return sent, remainder


kept = functools.partial(corrected, momentum=0.0)  # top-k with error feedback
KEPT_MISTAKES = {
    "what is sent stays in the residual, and is sent again": {"residual_goes": False},
    "what was owed is forgotten": {"add": False},
    "the largest are chosen with their sign: −5 is large, too": {"by": np.asarray},
}
CORRECTED_MISTAKES = {
    "the velocity goes on where it has been sent": {"velocity_goes": False},
    "what is sent stays in the residual, and is sent again": {"residual_goes": False},
    "gradients are owed and no velocities: nothing goes on from step to step": {
        "group": "gradient"
    },
    "both stay as they are where they were sent": {
        "velocity_goes": False, "residual_goes": False,
    },
}  # fmt: skip


def drawn(rule, mistakes) -> np.ndarray:
    """Gradients (STEPS, N) that lean to one side, so that velocities grow; all mistakes show."""
    rng = kinds.generator()
    while True:
        gradients = rng.normal(size=N) + 0.5 * rng.normal(size=(STEPS, N))
        right = rule(gradients)[0]
        if not any(alike(rule(gradients, **how)[0], right) for how in mistakes.values()):
            return gradients


def compared(step, rule, mistakes) -> str:
    """What is wrong with the steps of an answer; nothing if they are right."""
    gradients = drawn(rule, mistakes)
    got, expected = [], rule(gradients)[0]
    for gradient in gradients:
        given = gradient.copy()
        result = step(given)
        if not np.array_equal(given, gradient):
            return "the gradient is changed, and should be left as it is"
        if not isinstance(result, tuple) or len(result) != 2:
            return f"expected places and values, got {type(result).__name__}"
        order = np.argsort(result[0])
        got.append((np.asarray(result[0])[order], np.asarray(result[1])[order]))
    if alike(got, expected):
        return ""
    for words, how in mistakes.items():
        if alike(got, rule(gradients, **how)[0]):
            return words
    first = next(k for k in range(STEPS) if not alike(got[k : k + 1], expected[k : k + 1]))
    places, values = expected[first]
    return (
        f"step {first}: expected places {places.tolist()} with {values.round(3).tolist()}, "
        f"got {got[first][0].tolist()} with {got[first][1].round(3).tolist()}"
    )


def alike(got, expected) -> bool:
    """Whether the same numbers are sent from the same places."""
    return all(
        a.shape == c.shape and np.array_equal(a, c) and np.allclose(b, d)
        for (a, b), (c, d) in zip(got, expected, strict=True)
    )


def as_kept(answer) -> str:
    """What is wrong with top-k with error feedback; nothing if it is right."""
    residual = np.zeros(N)
    return compared(lambda g: answer(residual, g, K), kept, KEPT_MISTAKES)


def as_corrected(answer) -> str:
    """What is wrong with momentum correction; nothing if it is right."""
    velocity, residual = np.zeros((2, N))
    return compared(
        lambda g: answer(velocity, residual, g, K, MOMENTUM), corrected, CORRECTED_MISTAKES
    )


def as_merge(answer) -> str:
    """What is wrong with a sum of two streams; nothing if it is right."""
    rng = kinds.generator()
    for trial in range(20):
        streams, total = [], np.zeros(N)
        fewest = 0 if trial else N // 2 + 1  # the first two have some place in common
        for _ in range(2):
            places = np.sort(rng.choice(N, rng.integers(fewest, N), replace=False))
            values = rng.normal(size=places.size)
            total[places] += values
            streams += [places, values]
        places, values = answer(*(part.copy() for part in streams))
        expected = np.union1d(streams[0], streams[2])
        if len(places) != len(set(np.asarray(places).tolist())):
            return "a place is there twice: add up what both streams have for it"
        if np.any(np.diff(places) < 0):
            return "places are not in order"
        if not np.array_equal(places, expected):
            return f"expected places {expected.tolist()}, got {np.asarray(places).tolist()}"
        if not np.allclose(values, total[expected]):
            return "the places are right, their values are not: is what both have added up?"
    return ""


@kinds.number(
    "A place is free if no rank has taken it: 0.99 to the power of the ranks.",
    "The smallest whole number P with 0.99^P below one half.",
)
def ranks_to_half():
    """ln 2 is 0.69, and 1 % is small: about 0.69 / 0.01 ranks."""
    return 69


@kinds.formula(
    lambda rng: {
        "n": int(rng.integers(100, 100_000)),
        "place_bytes": int(rng.integers(1, 9)),
        "value_bytes": int(rng.integers(1, 9)),
    },
    "A stream of k numbers takes k (place_bytes + value_bytes), the array n value_bytes.",
    "As long is not longer: round down.",
)
def switch(n, place_bytes, value_bytes):
    """Half of n where both take 4 bytes; with short places and long values nearly all of it."""
    return n * value_bytes // (place_bytes + value_bytes)


@kinds.tested(
    as_kept,
    "residual += gradient, in place; then choose from the residual, by absolute value.",
    "Copy the values before you set residual[places] to zero.",
)
def feedback(residual, gradient, k):
    """residual[places] with a list of places is a copy, so zeroing it afterwards is safe."""
    import numpy as np

    residual += gradient
    places = np.argsort(-abs(residual), kind="stable")[:k]
    values = residual[places]
    residual[places] = 0
    return places, values


@kinds.tested(
    as_merge,
    "Walk along both: take the smaller place; where they are equal, one place and the sum.",
    "Or let NumPy do it: np.union1d, and np.add.at or np.searchsorted.",
)
def merged(a_places, a, b_places, b):
    """The walk of the lesson's `merge` is faster: both are in order already."""
    import numpy as np

    places = np.union1d(a_places, b_places).astype(int)
    values = np.zeros(places.size)
    values[np.searchsorted(places, a_places)] += a
    values[np.searchsorted(places, b_places)] += b
    return places, values


@kinds.tested(
    as_corrected,
    "velocity = momentum · velocity + gradient, and the residual gains the velocity.",
    "What is sent is zeroed in both arrays, and nothing else is.",
)
def correction(velocity, residual, gradient, k, momentum):
    """Both are zeroed where sent, or the same push would arrive twice."""
    import numpy as np

    velocity *= momentum
    velocity += gradient
    residual += velocity
    places = np.argsort(-abs(residual), kind="stable")[:k]
    values = residual[places]
    velocity[places] = residual[places] = 0
    return places, values


# --- sparse gradients -----------------------------------------------------------------------------

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


class CountedDataParallel(DataParallel):
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
        lambda *group, argument: DeepGradientCompression(
            *group, f"{argument},50", momentum=0.0, clip=None
        ),
        0.8,
        "sgd",
    ),
    "DGC": (lambda *group, argument: DeepGradientCompression(*group, f"{argument},50"), 0.4, "sgd"),
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
        methods.append(method := CountedDataParallel(comm, compress=compress))
        return train(data, method=method, **how).history[-1]["test_accuracy"]

    world = Counting(n_ranks)
    try:
        result = world.run(program)[0]
    except Diverged:
        result = 1 / len(data.class_names)
    return result, sum(method.sent for method in methods)


def by_density(
    densities: Sequence[float], data, algorithms: Sequence[str] = tuple(WAYS), seed: int = 0, **plan
) -> dict[str, dict[float, tuple[float, int]]]:
    """By way and density: accuracy and bytes, see `learnt`."""
    result: dict[str, dict[float, tuple[float, int]]] = {way: {} for way in algorithms}
    for way in algorithms:
        make, rate, optimizer = WAYS[way]
        for density in densities:
            made = functools.partial(make, argument=density)
            result[way][density] = learnt(made, data, rate, optimizer, seed, **plan)
    return result


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
        group = replica(network, data, batch, 0.4)
        for step in range(n_steps):
            rng = np.random.default_rng(step)
            method.step(group, rng.choice(len(data.train_labels), batch, replace=False))
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
    files.keep_compiled()
    result = {}
    for n in sizes:
        values = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        k = round(density * n)
        places, chosen = np.empty(k, np.int32), np.empty(k, np.float32)
        calls = {
            "select": functools.partial(select, values, places, chosen),
            "np.partition": functools.partial(by_partition, values, k),
            "np.argpartition": functools.partial(by_argpartition, values, k),
        }
        result[n] = timing.compare(
            calls, checks=functools.partial(same, calls, values, k), repeats=repeats, work=4 * n
        )
    return result


def same(calls: Mapping[str, Callable], values: np.ndarray, k: int, name: str) -> bool:
    """Whether one of the calls has chosen what sorting all would."""
    expected = np.sort(np.argsort(-abs(values), kind="stable")[:k])
    got = calls[name]()
    return np.array_equal(calls[name].args[1] if got is None else got[0], expected)


# --- ways to add up gradients of which few numbers count: bytes and time, in both worlds ----------

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
    algorithms: Sequence[str], n: int, ranks: Sequence[int], network: str
) -> dict[str, dict[int, Sum]]:
    """By way and virtual ranks, a sum of n numbers on such links; computing takes no time."""
    result: dict[str, dict[int, Sum]] = {way: {} for way in algorithms}
    for way in algorithms:
        for n_ranks in ranks:
            counting = Counting(n_ranks, network)
            counting.run(add_up, way, n)
            result[way][n_ranks] = Sum(float(counting.sent.sum(1).mean()), counting.seconds)
    return result


def stream_bytes(n: int, k: int, n_ranks: int) -> float:
    """What a rank of 2^r sends in r rounds of streams, predicted for places taken at random."""
    total, share = 0.0, k / n
    for _ in range(n_ranks.bit_length() - 1):
        total += 4 + min(8 * share * n, 4 * n)
        share = 1 - (1 - share) ** 2
    return total


def counted_bytes(choices: Sequence[np.ndarray], n: int) -> float:
    """What a rank sends if each has chosen such places, int32, of n: the mean, counted."""

    def program(comm) -> None:
        places, total = choices[comm.rank], np.empty(n, np.float32)
        sparse.allreduce(comm, places, np.ones(places.size, np.float32), total)

    world = Counting(len(choices))
    world.run(program)
    return float(world.sent.sum(1).mean())


# --- steps of a perceptron ----------------------------------------------------------------------


def stepping(comm, compress: str, data, batch: int) -> Callable[[], float]:
    """A rank's call that takes a step of PERCEPTRON on the same images each time."""
    group = replica(PERCEPTRON, data, batch, 0.1)
    method = DataParallel(comm, compress=None if compress == WHOLE else compress)
    return functools.partial(method.step, group, np.arange(batch))


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


class StepTime(NamedTuple):
    """Seconds of a rank's step: computing, what choosing and adding take, and the messages."""

    compute: float
    work: float
    messages: float

    @property
    def seconds(self) -> float:
        """The whole step."""
        return sum(self)


def virtual_steps(
    algorithms: Sequence[str], data, n_ranks: int, networks: Sequence[str], batch: int
) -> dict[str, dict[str, StepTime]]:
    """By network and way, a step of PERCEPTRON on virtual ranks.

    What a rank computes is measured here, on one core, in turns; its messages take virtual time.
    """
    group, share = replica(PERCEPTRON, data, batch, 0.1), np.arange(batch // n_ranks)
    flat = group.grads.flat
    calls = {"compute": lambda: (group.gradients(share), group.update(batch))}
    noise = np.random.default_rng(0).standard_normal(flat.size).astype(np.float32)
    for way in algorithms:
        calls[way] = functools.partial(again, adder(Echo(n_ranks), way), noise, flat)
    medians = {name: taken.median for name, taken in timing.compare(calls).items()}
    return {
        network: {
            way: StepTime(medians["compute"], medians[way], result[n_ranks].seconds)
            for way, result in sums(algorithms, flat.size, (n_ranks,), network).items()
        }
        for network in networks
    }


def again(add: Callable, values: np.ndarray, flat: np.ndarray) -> None:
    """Add up the same values once more."""
    flat[:] = values
    add(flat)


def real_steps(
    algorithms: Sequence[str], data, latency: float, bandwidth: float, batch: int, repeats: int = 9
) -> dict[str, list[float]]:
    """On each rank of a cluster: samples of seconds of a step, by way in turn, messages slowed."""
    from cnnlab.ranks.slow import network

    with network(latency, bandwidth, world()) as slowed:
        calls = {way: stepping(slowed, way, data, batch) for way in algorithms}
        return alternately(slowed.comm, calls, repeats)


def gains(seconds: Mapping[str, float]) -> dict[str, float]:
    """By way, how many times as fast as WHOLE."""
    return {way: seconds[WHOLE] / group for way, group in seconds.items() if way != WHOLE}


# --- the challenge of few numbers: train as well as with all of them, with the fewest bytes -------


def said(mine: Callable) -> str:
    """What is wrong with what a chooser sends, in words; nothing if it can be added up."""
    n = 1000  # numbers of a gradient that is looked at
    gradient = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    places, values = mine(n, 0).choose(gradient, 1, 1)
    if places.dtype != np.int32 or values.dtype != np.float32 or places.shape != values.shape:
        got = f"{places.dtype} {places.shape} and {values.dtype} {values.shape}"
        return f"choose: expected places int32 (k) and values float32 (k), got {got}"
    if np.any(np.diff(np.r_[-1, places, n]) <= 0):
        return f"choose: expected places ascending, each once, from 0 to {n - 1}"
    return ""


def challenge_streams(
    mine: Callable, rate: float, data, goal: float, fewest: int, **plan
) -> int | None:
    """Train with a way to choose and say how many bytes all ranks send; `fewest` is to be beaten.

    `mine(n, seed)` makes one with the interface of `Streams`; ... is not yet one. `goal` is a test
    accuracy. Returns the bytes, None where the goal was missed.
    """
    if not callable(mine):
        print("challenge: not yet answered")
        return None
    if wrong := said(mine):
        print(f"✗ {wrong}")
        return None
    reached, n_bytes = learnt(mine, data, rate, **plan)
    if reached < goal:
        print(f"✗ {reached:.1%} with {n_bytes / 1e6:.2f} MB; the goal is {goal:.1%}")
        return None
    ratio = fewest / n_bytes
    print(f"✓ {reached:.1%} with {n_bytes / 1e6:.2f} MB: {ratio:.2f} times fewer than the lesson")
    return n_bytes


# --- sparse gradients as pictures -----------------------------------------------------------------

HALF = 0.5  # of the places taken: there a stream of 32-bit places is as long as the array


@figure
def filling(
    densities: Sequence[float], ranks: Sequence[int], counted: Mapping[str, Sequence[float]]
) -> Axes:
    """Draw the share of places taken in a sum over the ranks: predicted lines, counted dots.

    `counted` has by name the shares for each of `ranks`. Above the dashed line the whole array is
    the shorter message.
    """
    _, ax = plt.subplots(figsize=(8, 3.6))
    labels = []
    names = [f"{density:.1%} each" for density in densities]
    shades = colors([*names, *counted])
    for density, name, color in zip(densities, names, shades, strict=False):
        line = [filled(density, p) for p in ranks]
        ax.plot(ranks, line, color=color, linewidth=1.6)
        labels.append((ranks[-1], line[-1], name, color))
    points = zip(counted.items(), shades[len(names) :], "osD^", strict=False)
    for (name, group), color, mark in points:
        ax.plot(ranks, group, mark, color=color, markersize=5, label=name)
    ax.axhline(HALF, color=GREY, linestyle="--", linewidth=1.2)
    ax.set(xscale="log", xlabel="ranks", ylabel="share of places taken", ylim=(0, 1))
    ax.set_xticks(ranks, [str(p) for p in ranks])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(frameon=False, loc="upper left")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def by_ranks(result: Mapping[str, Mapping[int, tuple[float, float]]]) -> Axes:
    """Draw what a sum takes over the ranks, by way: bytes that a rank sends, and virtual seconds.

    `result` is what `bench.sparse_sums.sums` returns.
    """
    _, both = plt.subplots(1, 2, figsize=(8.4, 3.6))
    algorithms = zip(result.items(), colors(list(result)), strict=True)
    for (way, group), color in algorithms:
        for ax, values in zip(both, zip(*group.values(), strict=True), strict=True):
            ax.plot(list(group), values, "o-", color=color, markersize=4, label=way)
    for ax, what in zip(both, ("bytes that a rank sends", "virtual seconds"), strict=True):
        ranks = list(next(iter(result.values())))
        ax.set(xscale="log", yscale="log", xlabel="virtual ranks", ylabel=what)
        ax.set_xticks(ranks, [str(p) for p in ranks])
        ax.minorticks_off()
    both[0].legend(frameon=False, fontsize=8)
    return both[0]


@figure
def streams_by_density(
    result: Mapping[str, Mapping[float, Sequence[float]]], whole: Mapping[str, Sequence[float]]
) -> Axes:
    """Draw the test accuracy over the density: dots are seeds, lines their means.

    Dashed lines are trainings that send everything, `whole`, by name.
    """
    _, ax = plt.subplots(figsize=(8, 4))
    labels = []
    shades = dict(zip(result, colors(list(result)), strict=True))
    for k, (way, group) in enumerate(result.items()):
        means = [sum(ends) / len(ends) for ends in group.values()]
        for density, ends in group.items():
            x = density * aside(k, len(result))
            ax.plot([x] * len(ends), ends, "o", color=shades[way], markersize=4)
        ax.plot(list(group), means, color=shades[way], linewidth=2)
        labels.append((list(group)[-1], means[-1], way, shades[way]))
    for name, ends in whole.items():
        mean = sum(ends) / len(ends)
        ax.axhline(mean, color=GREY, linestyle="--", linewidth=1.2)
        labels.append((min(min(group) for group in result.values()), mean, name, GREY))
    ax.set(xscale="log", ylabel="test accuracy")
    ax.set_xlabel("share of the numbers that a rank sends, after any warm-up")
    ax.invert_xaxis()
    densities = sorted({density for group in result.values() for density in group})
    ax.set_xticks(densities, [f"{density:.1%}" for density in densities])
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.minorticks_off()
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax
