"""The exercises of lesson 55."""

import types
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.distributed.averaging import Elastic, Gossip, disagreement
from cnnlab.distributed.trial import Counting
from cnnlab.kernels import find
from cnnlab.kernels.composition import forward
from cnnlab.network import Network, Parameters
from cnnlab.plots.style import GREY, INK, colors, figure, label_ends, note
from cnnlab.ranks.schedules import block
from cnnlab.ranks.virtual import World
from cnnlab.training import Method, Replica, Sgd, accuracy


def elastics(models, centre, gradients, rate, moving, *, late=False, mean=False, ahead=False):
    """One step of elastic averaging in float64, as new arrays: right, or with a usual mistake."""
    old = models - rate * gradients if ahead else models
    new = models - moving * (old - centre) - rate * gradients
    gap = (new if late else old) - centre
    return new, centre + moving * (gap.mean(0) if mean else gap.sum(0))


ELASTIC_MISTAKES = {
    "the centre is pulled by the new models, and should be by the old ones": {"late": True},
    "the centre moves by the mean of the pulls, and should by their sum": {"mean": True},
    "the pull is taken after the step along the gradient, and should be before": {"ahead": True},
}


def as_elastic(step) -> str:
    """What is wrong with a step of elastic averaging, in words; nothing if it is right."""
    rng = kinds.generator()
    start, gradients = rng.normal(size=(2, 4, 6))
    centre, rate, moving = rng.normal(size=6), 0.3, 0.2
    models, c = start.copy(), centre.copy()
    step(models, c, gradients.copy(), rate, moving)
    if np.array_equal(models, start):
        return "the models have not moved: change them in place"
    if np.array_equal(c, centre):
        return "the centre has not moved: change it in place"
    given = start, centre, gradients, rate, moving
    right = elastics(*given)
    if np.allclose(models, right[0]) and np.allclose(c, right[1]):
        return ""
    for words, how in ELASTIC_MISTAKES.items():
        if all(map(np.allclose, (models, c), elastics(*given, **how))):
            return words
    if not np.allclose(c, right[1]):
        return f"the centre is off by up to {np.abs(c - right[1]).max():.2g}"
    return f"the models are off by up to {np.abs(models - right[0]).max():.2g}"


def as_mixing(weigh) -> str:
    """What is wrong with a function that makes mixing matrices, in words; nothing if it is right.

    It is tried on stars, on a ring with a tail, and on two ranks.
    """
    stars = [(n, [(0, k) for k in range(1, n)]) for n in (2, 5, 9)]
    for n, edges in (*stars, (5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)])):
        got = np.asarray(weigh(n, edges), float)
        if got.shape != (n, n):
            return f"for {n} ranks the matrix is {got.shape}, and should be ({n}, {n})"
        linked = np.eye(n, dtype=bool)
        for i, j in edges:
            linked[i, j] = linked[j, i] = True
        if (got < -1e-12).any():
            return f"edges {edges}: a weight is negative: {got.min():.2g}"
        if (got[~linked] != 0).any():
            return f"edges {edges}: ranks that are not neighbours have a weight"
        if not np.allclose(got.sum(1), 1):
            return f"edges {edges}: the rows add up to {np.round(got.sum(1), 3)}"
        if not np.allclose(got.sum(0), 1):
            return f"edges {edges}: rows add up to 1, columns to {np.round(got.sum(0), 3)}"
        mixed = linked & (got > 1e-12)
        if not all(mixed[i, j] and mixed[j, i] for i, j in edges):
            return f"edges {edges}: neighbours have no weight, and never agree"
    return ""


@kinds.formula(
    lambda rng: {"n_ranks": int(rng.integers(2, 65)), "moving_rate": float(rng.uniform(0, 0.1))},
    "Write c ← c + α Σ (x − c), and collect what stands before c.",
    "The talk's centre is (1 − β) c + (β/m) Σ x, with m ranks.",
)
def beta(n_ranks, moving_rate):
    """β = m α: the centre goes m times as large a share of the way as a model does."""
    return n_ranks * moving_rate


@kinds.formula(
    lambda rng: {"rate": float(rng.uniform(0.01, 0.5)), "curvature": float(rng.uniform(0.1, 3.5))},
    "A step is x − rate · curvature · x: what does the theory call that product?",
    "Put rate · curvature in the place of η.",
)
def largest(rate, curvature):
    """Only the product of rate and curvature matters: it is η of the parabola of curvature 1."""
    return (4 - 2 * rate * curvature) / (4 - rate * curvature)


@kinds.tested(
    as_mixing,
    "Both ends of an edge must give it the same weight: which of the two degrees is safe?",
    "1 / (1 + the larger degree) for an edge; the diagonal is what is left of 1 in its row.",
)
def mixing(n, edges):
    """A symmetric matrix whose rows add up to 1 has columns that do, too."""
    weights = np.zeros((n, n))
    degree = np.bincount(np.ravel(edges), minlength=n)
    for i, j in edges:
        weights[i, j] = weights[j, i] = 1 / (1 + max(degree[i], degree[j]))
    np.fill_diagonal(weights, 1 - weights.sum(1))
    return weights


@kinds.tested(
    as_elastic,
    "What does the centre need of the models, and is it still there after they have moved?",
    "Take the pulls once, moving_rate · (models − centre), and use them twice.",
)
def elastic(models, centre, gradients, rate, moving_rate):
    """The pulls are taken once, from the old values: equal and opposite, as a spring's are."""
    pulls = moving_rate * (models - centre)
    models -= pulls + rate * gradients
    centre += pulls.sum(0)


# --- methods that average models on the simplest of losses, where theory says what they do --------


class ParabolaReplica:
    """What a method trains in place of a network: float64 numbers x, and the gradient κ x.

    It has the names of `training.Replica` that methods ask for.
    """

    def __init__(self, start: np.ndarray, rate: float, curvature: float):
        self.params = types.SimpleNamespace(flat=np.array(start, np.float64))
        self.grads = types.SimpleNamespace(flat=np.zeros_like(self.params.flat))
        self.strategy = types.SimpleNamespace(together=False)
        self.optimizer, self.curvature = Sgd(rate), curvature

    def gradients(self, chosen: np.ndarray) -> float:
        """The loss, whatever the images; its gradient goes to `grads`."""
        x = self.params.flat
        self.grads.flat[:] = self.curvature * x
        return float(self.curvature * x @ x / 2)

    def update(self, n_images: int) -> None:
        """Step along `grads`."""
        self.optimizer.update(self.params, self.grads, 1)


def elastic_matrix(
    rate: float, moving_rate: float, curvature: float = 1.0, n_ranks: int = 1
) -> np.ndarray:
    """What a step does to (x, centre), as a matrix (2, 2), where all ranks are at the same x."""
    η, α, κ = rate, moving_rate, curvature
    return np.array([[1 - η * κ - α, α], [n_ranks * α, 1 - n_ranks * α]])


def growth(matrix: np.ndarray) -> float:
    """By which factor a matrix makes the worst direction longer each time: its spectral radius."""
    return float(abs(np.linalg.eigvals(matrix)).max())


def largest_moving_rate(rate: float, n_ranks: int = 1) -> float:
    """The α up to which P ranks with curvature 1 are stable: (4 − 2η) / (2 (P + 1) − P η).

    For one worker this is the (4 − 2η) / (4 − η) of Zhang, Choromanska and LeCun 2015; for rates η
    from 0 to 2. There an eigenvalue of `elastic_matrix` is −1.
    """
    return (4 - 2 * rate) / (2 * (n_ranks + 1) - n_ranks * rate)


def elastic_path(
    rate: float, moving_rate: float, n_steps: int, curvature: float = 1.0, n_ranks: int = 1
) -> np.ndarray:
    """Where the method `elastic` takes (x, centre), float64 (n_steps + 1, 2), from (1, −0.7)."""

    def program(comm):
        group, method = ParabolaReplica([1.0], rate, curvature), Elastic(comm, 1, moving_rate)
        method.enter(group)
        method.centre[:] = -0.7
        places = [(group.params.flat[0], method.centre[0])]
        for _ in range(n_steps):
            method.step(group, np.arange(n_ranks))
            places.append((group.params.flat[0], method.centre[0]))
        return np.array(places)

    return World(n_ranks).run(program)[0]


def measured_growth(places: np.ndarray) -> float:
    """By which factor the later half of a path grew at each step, in the mean."""
    sizes = np.linalg.norm(places, axis=1)
    middle = len(sizes) // 2
    return float((sizes[-1] / sizes[middle]) ** (1 / (len(sizes) - 1 - middle)))


def gossip_path(graph: str, n_ranks: int, n_meetings: int, seed: int = 0) -> np.ndarray:
    """How far ranks disagree before and after each meeting, float64 (n_meetings + 1).

    The method `gossip` mixes 100 random numbers a rank, which nothing else changes.
    """
    starts = np.random.default_rng(seed).standard_normal((n_ranks, 100))

    def program(comm) -> Sequence[np.ndarray]:
        group, method = ParabolaReplica(np.zeros(100), 0.0, 0.0), Gossip(comm, 1, graph)
        method.make_room(group)
        method.kept["model of ranks"][:] = starts
        method.enter(group)
        models = [group.params.flat.copy()]
        for _ in range(n_meetings):
            method.step(group, np.arange(n_ranks))
            models.append(group.params.flat.copy())
        return models

    by_rank = np.array(World(n_ranks).run(program))
    return np.array([disagreement(models) for models in by_rank.swapaxes(0, 1)])


# --- from consistent to independent: what ranks learn on their own, and what they send for it -----


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
        result = world.run(program)
    sent, models, (params, *_) = zip(*result, strict=True)
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
    result = learn(make, data, n_ranks, **how)
    if result.accuracy < target:
        print(f"✗ {result.accuracy:.1%} right; the goal is {target:.0%}")
        return None
    print(f"{result.accuracy:.1%} right, with {result.sent:,.0f} bytes a step from each rank")
    return result.sent


# --- ranks that average models --------------------------------------------------------------------


@figure
def averages_mixing(graphs: Mapping[str, np.ndarray]) -> Sequence[Axes]:
    """Draw mixing matrices: row by row, whose models a rank averages, and with which weights."""
    _, axes = plt.subplots(1, len(graphs), figsize=(2.4 * len(graphs), 2.9), squeeze=False)
    for ax, (name, weights) in zip(axes[0], graphs.items(), strict=True):
        ax.imshow(np.where(weights > 0, weights, np.nan), cmap="Blues", vmin=0, vmax=0.6)
        low, high = (f"1/{1 / w:.0f}" for w in (weights[weights > 0].min(), weights.max()))
        ax.set_title(f"{name}, {low} " + ("each" if low == high else f"to {high}"), fontsize=10)
        ax.set(xlabel="model of rank", xticks=[0, len(weights) - 1], yticks=[0, len(weights) - 1])
        ax.grid(visible=False)
    axes[0, 0].set_ylabel("averaged by rank")
    return axes


@figure
def shrinking(
    series: Mapping[str, Sequence[float]], factors: Mapping[str, float], *, x: str, y: str
) -> Axes:
    """Draw sizes that shrink or grow step by step, and dashed, from the middle on, as predicted.

    `factors` says by how much each of `series` changes in a step: 0 is told, as a logarithm cannot
    show it. What has vanished is not drawn.
    """
    _, ax = plt.subplots(figsize=(8, 4))
    labels = []
    for color, (name, group) in zip(colors(list(series)), series.items(), strict=True):
        sizes = np.array(group, float)
        there = np.flatnonzero(sizes > 1e-12 * sizes[0])
        ax.plot(there, sizes[there], "o-", color=color, markersize=3, linewidth=1.2)
        last = int(there[-1])
        said = f"× {factors[name]:.3f}" if factors[name] else f"0 after {last + 1} {x}"
        labels.append((last, sizes[last], f"{name}: {said}", color))
        if last > 5:
            steps = np.arange(last // 2, last + 1)
            line = sizes[steps[0]] * factors[name] ** (steps - steps[0])
            ax.plot(steps, line, "--", color=INK, linewidth=1.2)
    ax.set(yscale="log", xlabel=x, ylabel=y)
    ax.minorticks_off()
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax


@figure
def from_consistent_to_independent(points: Mapping[str, tuple[float, float]], level: float) -> Axes:
    """Draw accuracy over the bytes that a rank sends in a step; at the left, nothing is sent.

    `points` has (bytes, accuracy) by name: the first word is a family, and has a colour. The dashed
    line is at `level`, what one rank of them has learned alone.
    """
    _, ax = plt.subplots(figsize=(8, 5.4))
    families = list(dict.fromkeys(name.split()[0] for name in points))
    color = dict(zip(families, colors(families), strict=True))
    for name, (sent, right) in points.items():
        own = color[name.split()[0]]
        ax.plot(sent, right, "o", color=own, markersize=7)
        note(ax, name, (sent, right), (6, -3), color=own, fontsize=9)
    ax.axhline(level, color=GREY, linestyle="--", linewidth=1.2)
    ax.set_xscale("symlog", linthresh=100, linscale=0.5)
    most = max(sent for sent, _ in points.values())
    ticks = [0, *(10**k for k in range(2, 9) if 10**k < 2 * most)]
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlim(-30, 3 * most + 30)
    ax.set(xlabel="bytes that a rank sends in a step", ylabel="test accuracy")
    ax.yaxis.set_major_formatter("{x:.0%}")
    return ax
