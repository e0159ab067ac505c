"""Lesson 53, another direction: exercises, formulas of optimisers, paces and what they take.

A pace is a function of the epochs done, a fraction, that returns the batch and the rate.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.check.verdict import Verdict
from cnnlab.kernels import KERNELS
from cnnlab.measure import timing
from cnnlab.network import Network
from cnnlab.plots.style import GREY, INK, OTHERS, aside, colors, figure, label_ends
from cnnlab.ranks.schedules import block
from cnnlab.ranks.virtual import Link, World
from cnnlab.runtime import arguments
from cnnlab.runtime.arguments import at_least
from cnnlab.training import BATCH, OPTIMIZERS, Diverged, Method, Replica, Sgd, accuracy, train

BETAS, EPSILON, N_STEPS = (0.9, 0.999), 1e-8, 12


def adams(gradients, rate, *, first=1, inside=False, corrected=True, carried=False, early=False):
    """Where Adam gets from zero in float64: right, or with one of the usual mistakes."""
    w = m = v = 0.0
    for t, g in enumerate(gradients, first):
        m = BETAS[0] * m + (1 - BETAS[0]) * (rate * g if early else g)
        v = BETAS[1] * v + (1 - BETAS[1]) * g**2
        by = (1 - BETAS[0] ** t, 1 - BETAS[1] ** t) if corrected else (1, 1)
        m_hat, v_hat = m / by[0], v / by[1]
        if carried:
            m, v = m_hat, v_hat
        root = np.sqrt(v_hat + EPSILON) if inside else np.sqrt(v_hat) + EPSILON
        w = w - (1 if early else rate) * m_hat / root
    return w


ADAMS_MISTAKES = {
    "ε lies inside the root": {"inside": True},
    "nothing is divided by 1 − βᵗ": {"corrected": False},
    "the corrected averages are carried on": {"carried": True},
    "t is one too large": {"first": 2},
}


def as_adam(update) -> str:
    """What is wrong with an update of Adam's, in words; nothing if it is right."""
    gradients = kinds.generator().normal(size=(N_STEPS, len(SIZES))) * SIZES
    w, m, v = np.zeros((3, len(SIZES)))
    for t, g in enumerate(gradients, 1):
        given = g.copy()
        update(w, m, v, given, t, 0.01)
        if not np.array_equal(given, g):
            return "g is changed, and should be left as it is"
    return message(
        w, adams(gradients, 0.01), ADAMS_MISTAKES, lambda how: adams(gradients, 0.01, **how)
    )


def nesterovs(w, slope, rate, mu, *, ahead=1, mix=1.0, stale=False, n_steps=N_STEPS):
    """Where Nesterov's momentum gets from w in float64: right, or with a usual mistake."""
    v = 0 * w
    for _ in range(n_steps):
        new = mu * v - mix * rate * slope(w + ahead * mu * v)
        w, v = w + (v if stale else new), new
    return w


NESTEROVS_MISTAKES = {
    "the gradient is taken behind w, not ahead of it": {"ahead": -1},
    "the gradient is taken at w, which is plain momentum": {"ahead": 0},
    "the gradient is weighed by 1 − µ": {"mix": 0.1},
    "w steps along the velocity before the update": {"stale": True},
}


def as_nesterov(update) -> str:
    """What is wrong with an update of Nesterov's, in words; nothing if it is right."""
    rng = kinds.generator()
    start, steep = rng.normal(size=5), rng.uniform(1, 20, 5)
    w, v = start.copy(), np.zeros(5)
    for _ in range(N_STEPS):
        update(w, v, lambda at: steep * at, 0.02, 0.9)
    way = start, lambda at: steep * at, 0.02, 0.9
    return message(w, nesterovs(*way), NESTEROVS_MISTAKES, lambda how: nesterovs(*way, **how))


def message(got, expected, mistakes, make) -> str:
    """Nothing if two results agree; else the mistake that leads there, or how far they differ."""
    if np.allclose(got, expected, rtol=1e-6, atol=1e-14):
        return ""
    for words, how in mistakes.items():
        if np.allclose(got, make(how), rtol=1e-6, atol=1e-14):
            return words
    if not np.any(got):
        return "w has not moved: change it in place"
    if not np.isfinite(got).all():
        return f"w is not finite after {N_STEPS} steps: is something divided by 1 − β⁰?"
    return f"after {N_STEPS} steps w is off by up to {np.abs(got - expected).max():.2g}"


@kinds.number(
    "Write down m and v after the first gradient g, both averages having begun at zero.",
    "m is 0.1 g and v is 0.001 g². What is m / √v, where m̂ / √v̂ is 1?",
    rtol=1e-3,
)
def first_step():
    """0.1 over the root of 0.001: the average of squares lags further behind."""
    return (1 - 0.9) / (1 - 0.999) ** 0.5


@kinds.formula(
    lambda rng: {
        "n_images": int(rng.integers(1000, 60_000)),
        "batch": int(rng.integers(1, 64)),
        "factor": int(rng.integers(2, 5)),
        "epochs": int(rng.integers(1, 5)),
    },
    "Epoch number e = 0, 1, … has batches of batch · factor^e images.",
    "The last batch of an epoch may be smaller, but it is a step: round up.",
)
def steps(n_images, batch, factor, epochs):
    """A geometric series, rounded up epoch by epoch: the later epochs are nearly free."""
    return sum(-(-n_images // (batch * factor**e)) for e in range(epochs))


@kinds.tested(
    as_nesterov,
    "Where does the velocity lead, before this gradient is known? Call slope there.",
    "v *= momentum first: then the place is w + v.",
)
def nesterov(w, v, slope, rate, momentum):
    """The sign matters: w + µv is where the velocity leads."""
    v *= momentum
    v -= rate * slope(w + v)
    w += v


@kinds.tested(
    as_adam,
    "m and v are kept as they are; what is divided by 1 − βᵗ is only used for this step.",
    "Take the root first, then add ε.",
)
def adam(w, m, v, g, t, rate):
    """In place, with t from 1 and ε outside the root."""
    m += (1 - 0.9) * (g - m)
    v += (1 - 0.999) * (g**2 - v)
    m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
    w -= rate * m_hat / (v_hat**0.5 + 1e-8)


# --- a search for learning rates: the same for every optimiser, with the same budget --------------

Found = dict[float, tuple[float, ...]]  # by rate, the accuracy of each seed


def search(
    data, rates: Mapping[str, Sequence[float]], seeds: Sequence[int] = (0, 1), **how
) -> dict[str, Found]:
    """The test accuracy with each rate and seed, by optimiser; `how` goes to `training.train`.

    A training that diverged counts as one that guesses.
    """

    def accuracy(optimizer: str, rate: float, seed: int) -> float:
        plan = how | {"optimizer": optimizer, "rate": rate, "seed": seed, "progress": False}
        try:
            return train(data, **plan).history[-1]["test_accuracy"]
        except Diverged:
            return 1 / len(data.class_names)

    return {
        name: {rate: tuple(accuracy(name, rate, seed) for seed in seeds) for rate in group}
        for name, group in rates.items()
    }


def best(result: Found) -> float:
    """The rate whose accuracies have the highest mean."""
    return max(result, key=lambda rate: sum(result[rate]))


# --- paces: how batch and rate change while training, and a training that follows one -------------

Pace = Callable[[float], tuple[int, float]]
PIECES, LOOKS = 8, 4  # of an epoch: a pace is asked so often, and the test images are


class Look(NamedTuple):
    """A look at a training on its way: epochs and steps done so far, and what it has learned."""

    epochs: float
    steps: int
    batch: int
    rate: float
    accuracy: float


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
    strategy = KERNELS["vector"]
    at_least("epochs", epochs, 1)
    at_least("every", every, 1)
    make = arguments.find("optimizer", optimizer, OPTIMIZERS)
    params, n = Network().parameters(seed), len(data.train_images)
    replica = Replica(strategy, params, data.train_images, data.train_labels, 1, make(1.0))
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


# --- steps of data parallelism in the virtual world: what they take on any number of ranks --------


class Compute(NamedTuple):
    """A model of what one rank computes: seconds for a step, and for each image of its share."""

    step: float
    image: float

    def seconds(self, n_images: int) -> float:
        """The gradients of so many images, and the update."""
        return self.step + n_images * self.image


def compute_model(
    sizes: Sequence[int] = (1, 16, 64, 256), repeats: int = 9
) -> tuple[Compute, dict[int, float]]:
    """The model fitted to gradients and update on this machine, and the medians, by images."""
    network = Network()
    images = np.random.default_rng(0).random((max(sizes), *network.image_shape), np.float32)
    labels = np.arange(len(images)) % network.classes
    held = KERNELS["vector"], network.parameters(), images, labels, len(images)
    replica = Replica(*held, Sgd(1e-3))

    def step(chosen: np.ndarray) -> None:
        replica.gradients(chosen)
        replica.update(len(chosen))

    calls = {str(n): functools.partial(step, np.arange(n)) for n in sizes}
    timings = timing.compare(calls, repeats=repeats)
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


# --- the challenge of a pace: the fewest virtual seconds to an accuracy ---------------------------


def challenge_pace(
    mine: Pace, data, target: float, best: float, *, optimizer: str = "sgd", epochs: int = 8,
    n_ranks: int = 64, **network,
) -> float | None:  # fmt: skip
    """Train at a pace and say how its virtual seconds to an accuracy compare with the `best` known.

    `mine` is a function of the epochs done that returns batch and rate; ... is not yet one.
    `network` is that of `training_seconds`: `compute`, `link`, `n_numbers`. Returns
    the virtual seconds, None where the accuracy was not reached.
    """
    if not callable(mine) or mine(0.0) is None:
        print("challenge: not yet answered")
        return None
    looks = follow(mine, data, optimizer=optimizer, epochs=epochs, target=target)
    if looks[-1].accuracy < target:
        reached = max(look.accuracy for look in looks)
        print(f"✗ {reached:.1%} after {epochs} epochs at best; the goal is {target:.0%}")
        return None
    seconds = training_seconds(looks, n_ranks, **network)
    times = f"{best / seconds:.2f} times as fast as the best of the lesson"
    print(f"{target:.0%} after {looks[-1].steps:,} steps: {1e3 * seconds:,.0f} virtual ms on "
          f"{n_ranks} ranks, {times}")  # fmt: skip
    return seconds


# --- whether an optimiser is its formula, which is written down here in float64 -------------------

Slope = Callable[[np.ndarray, int], np.ndarray]  # the gradient at w, in step t = 0, 1, …
# Of gradients: beside the smallest, ε is large.
SIZES = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)


def by_recent_squares(t, g, a, b):
    """A = βA + (1 − β)g², then g / (√A + ε)."""
    a = 0.99 * a + (1 - 0.99) * g**2
    return g / (np.sqrt(a) + 1e-8), a, b


def by_both_averages(t, g, m, v):
    """Averages of g and g², each over 1 − βᵗ, then m̂ / (√v̂ + ε)."""
    m, v = 0.9 * m + (1 - 0.9) * g, 0.999 * v + (1 - 0.999) * g**2
    return m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v


# By optimiser: the direction in step t = 1, 2, … along a gradient g, and what is kept, a and b.
FORMULAS: dict[str, Callable] = {
    "sgd": lambda t, g, a, b: (g, a, b),
    "momentum": lambda t, g, v, b: (0.9 * v + g, 0.9 * v + g, b),
    "nesterov": lambda t, g, v, b: (g + 0.9 * (0.9 * v + g), 0.9 * v + g, b),
    "adagrad": lambda t, g, a, b: (g / (np.sqrt(a + g**2) + 1e-10), a + g**2, b),
    "rmsprop": by_recent_squares,
    "adam": by_both_averages,
}


def stepped(formula: Callable, w: np.ndarray, slope: Slope, rate: float, n_steps: int):
    """Where a formula gets from w (M) in so many steps, in float64."""
    a = b = 0.0
    for t in range(1, n_steps + 1):
        way, a, b = formula(t, slope(w, t - 1), a, b)
        w = w - rate * way
    return w


def path(optimizer, start: np.ndarray, slope: Slope, n_steps: int) -> np.ndarray:
    """The places (n_steps + 1, M) to which an optimiser steps from a start (M), in float64."""
    params = SimpleNamespace(flat=np.array(start, np.float64))
    optimizer.begin(params)
    places = [params.flat.copy()]
    for t in range(n_steps):
        optimizer.update(params, SimpleNamespace(flat=np.array(slope(params.flat, t))), 1)
        places.append(params.flat.copy())
    return np.array(places)


def direction(name: str, make: Callable, n_steps: int = 50) -> Verdict:
    """Whether `make(rate)` steps as FORMULAS[name] does, along gradients of any size."""
    noise = np.random.default_rng(0).normal(size=(n_steps, len(SIZES))) * SIZES

    def slope(w, t):
        return noise[t] * (1 + w)

    start = np.zeros(len(SIZES))
    expected = stepped(FORMULAS[name], start, slope, 0.01, n_steps)
    error = np.abs(path(make(0.01), start, slope, n_steps)[-1] - expected).max()
    close = bool(error < 1e-12)
    said = "as" if close else "not as"
    return Verdict(close, f"{name}: {n_steps} steps {said} its formula (differ by {error:.1g})")


# --- optimisers as pictures: the ways they take down a valley, and what each rate is worth --------


@figure
def paths(steepness: tuple[float, float], places: Mapping[str, np.ndarray]) -> Axes:
    """Draw the ways that optimisers take down a valley, ½ Σ steepness w².

    `places` holds, by name, the places (T, 2) of each; every step is a dot.
    """
    fig, every = plt.subplots(2, -(-len(places) // 2), figsize=(8, 3.8), sharex=True, sharey=True)
    reach = 1.15 * np.abs([np.abs(way).max(0) for way in places.values()]).max(0)
    reach = np.minimum(reach, 3 * np.abs(next(iter(places.values()))[0]))  # of what flies off
    x, y = np.meshgrid(*(np.linspace(-r, r, 61) for r in reach))
    height = (steepness[0] * x**2 + steepness[1] * y**2) / 2
    levels = height.max() * np.geomspace(3e-3, 1, 6)
    panels = every.flat[: len(places)]
    for ax, (name, way), color in zip(panels, places.items(), colors(list(places)), strict=True):
        ax.contour(x, y, height, levels, colors=GREY, linewidths=0.6, alpha=0.7)
        ax.plot(*way.T, "o-", color=color, markersize=2.5, linewidth=1)
        ax.plot(0, 0, "+", color=INK)
        ax.set_title(name, fontsize=10, color=color)
        ax.set(xlim=(-reach[0], reach[0]), ylim=(-reach[1], reach[1]))
        ax.grid(visible=False)
    for ax in every.flat[len(places) :]:
        ax.set_axis_off()
    fig.supxlabel("$w_0$", fontsize=9)
    fig.supylabel("$w_1$", fontsize=9)
    return every.flat[0]


@figure
def accuracy_by_rate(result: Mapping[str, Mapping[float, tuple[float, ...]]]) -> Axes:
    """Draw the accuracy that each rate leads to: dots are seeds, lines their means."""
    _, ax = plt.subplots(figsize=(8, 4))
    labels = []
    for k, (color, name) in enumerate(zip(colors(list(result)), result, strict=True)):
        by_rate = result[name]
        rates, means = list(by_rate), [np.mean(group) for group in by_rate.values()]
        for rate, group in by_rate.items():
            x = rate * aside(k, len(result))
            ax.plot([x] * len(group), group, "o", color=color, markersize=4)
        ax.plot(rates, means, color=color, linewidth=2)
        labels.append((rates[-1], means[-1], name, color))
    ax.set(xscale="log", xlabel="rate", ylabel="accuracy on images held out")
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


# --- paces as pictures: steps and time to an accuracy, over batches and ranks ---------------------

Looks = Sequence[Look]  # as `follow` returns them
Runs = Mapping[int, Sequence[Looks]]  # by batch, a training for each seed


@figure
def steps_to(series: Mapping[str, Runs], target: float) -> Axes:
    """Draw the steps to an accuracy over the batch; crosses are seeds that missed it.

    Lines join the medians of seeds. Along the dashed line, twice the batch takes half the steps.
    """
    _, ax = plt.subplots(figsize=(8, 4.2))
    labels, batches = [], sorted({batch for runs in series.values() for batch in runs})
    for k, (color, name) in enumerate(zip(colors(list(series)), series, strict=True)):
        runs, line, beside = series[name], [], aside(k, len(series))
        for batch, trainings in runs.items():
            for looks in trainings:
                reached = looks[-1].accuracy >= target
                look = {"color": color, "markersize": 5 if reached else 8}
                ax.plot(beside * batch, looks[-1].steps, "o" if reached else "x", **look)
            if all(looks[-1].accuracy >= target for looks in trainings):
                line.append((batch, np.median([looks[-1].steps for looks in trainings])))
        if line:
            ax.plot(*zip(*line, strict=True), color=color, linewidth=2)
        last, trainings = list(runs.items())[-1]
        labels.append((beside * last, trainings[0][-1].steps, name, color))
    first = next(iter(series.values()))
    start = np.median([looks[-1].steps for looks in first[min(first)]])
    ideal = [start * min(first) / batch for batch in batches]
    ax.plot(batches, ideal, color=GREY, linestyle="--", linewidth=1.2)
    ax.set(xscale="log", yscale="log", xlabel="images a step", ylabel=f"steps to {target:.0%}")
    ax.set_xticks(batches, [str(batch) for batch in batches])
    ax.minorticks_off()
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def accuracy_by_steps(series: Mapping[str, Sequence[Looks]]) -> Axes:
    """Draw the test accuracy over the steps taken; each line is a seed."""
    _, ax = plt.subplots(figsize=(8, 3.8))
    labels = []
    for color, (name, trainings) in zip(colors(list(series)), series.items(), strict=True):
        for looks in trainings:
            steps, result = [x.steps for x in looks], [x.accuracy for x in looks]
            ax.plot(steps, result, "o-", color=color, markersize=3, linewidth=1.2)
        labels.append((steps[-1], result[-1], name, color))
    ax.set(xlabel="steps", ylabel="test accuracy", ylim=(0.8, 1))
    ax.set_yticks([0.8, 0.85, 0.9, 0.95, 1])
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def time_to(ranks: Sequence[int], seconds: Mapping[str, Sequence[float]]) -> Axes:
    """Draw the virtual seconds to an accuracy over the ranks, a line for each way.

    The best has a star. Along the dashed line, twice the ranks take half the time of the best on
    one.
    """
    _, ax = plt.subplots(figsize=(8, 4.6))
    labels, best = [], min(seconds, key=lambda name: min(seconds[name]))
    lines = zip(colors(list(seconds)), seconds.items(), strict=True)
    for k, (color, (name, group)) in enumerate(lines):
        mark = "o-" if k < len(OTHERS) else "s-."  # from there on, colours come again
        ax.plot(ranks, group, mark, color=color, markersize=4)
        labels.append((ranks[-1], group[-1], name, color))
        if name == best:
            ax.plot(ranks[int(np.argmin(group))], min(group), "*", color=color, markersize=16)
    alone = min(group[0] for group in seconds.values())
    ax.plot(ranks, [alone * ranks[0] / p for p in ranks], "--", color=GREY, linewidth=1.2)
    lowest = min(map(min, seconds.values()))
    ax.set(xscale="log", yscale="log", xlabel="virtual ranks", ylabel="virtual seconds")
    ax.set_ylim(lowest / 2, None)
    ax.set_xticks(ranks, [str(p) for p in ranks])
    ax.minorticks_off()
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax
