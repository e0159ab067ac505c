"""Lesson 55: ranks to train, pictures, and the exercises."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import forward
from cnnlab.network import Network, Parameters
from cnnlab.plots.style import COLORS, INK, colors, figure, label_ends, style
from cnnlab.ranks.virtual import Link, World
from cnnlab.training import Replica, Sgd

SIZE = 4  # images of a rank's step
SECONDS = 20e-6 + 2.5e-6 * SIZE  # of its gradient: one core of today
RATE = 0.4


class SharedTask:
    """The course's network, and images dealt to ranks in shares, from a seed.

    `skewed`: images are sorted by label first. `apart`: each rank has a start of its own.
    """

    def __init__(self, images, seed: int, n_ranks: int = 16, skewed=False, apart=False):
        order = np.random.default_rng(seed).permutation(len(images.train_labels))
        if skewed:
            order = order[np.argsort(images.train_labels[order], kind="stable")]
        self.images, self.seed, self.apart = images, seed, apart
        self.shares = np.array_split(order, n_ranks)

    def start(self, rank: int) -> np.ndarray:
        """The parameters that a rank begins with, float32 (2428)."""
        return Network().parameters([self.seed, rank] if self.apart else self.seed).flat

    def downhill(self, comm) -> Callable:
        """A function of x: RATE times the mean gradient there of the rank's next SIZE images."""
        params, train = Network().parameters(), (self.images.train_images, self.images.train_labels)
        replica = Replica(KERNELS["vector"], params, *train, SIZE, Sgd(RATE))
        rng, share = np.random.default_rng([self.seed, comm.rank]), self.shares[comm.rank]

        def batches():
            while True:  # an epoch of this share
                yield from rng.permutation(share)[: len(share) // SIZE * SIZE].reshape(-1, SIZE)

        def step(x: np.ndarray, chosen=batches()) -> np.ndarray:  # noqa: B008
            comm.compute(SECONDS)
            params.flat[:] = x
            replica.gradients(next(chosen))
            return replica.grads.flat * np.float32(RATE / SIZE)

        return step


def run(algorithm: Callable, task, n_ranks: int, n_steps: int, look: int = 0, **how):
    """Let virtual ranks take so many steps: their `models` (P, n) at the end, and their `world`.

    `looks` has what all had learned (P, n), by step, after every `look` of them.
    """
    world, looks = World(n_ranks, **how), {}

    def program(comm) -> np.ndarray:
        learner = algorithm(comm, task.start(comm.rank), task.downhill(comm))
        for k, learned in zip(range(1, n_steps + 1), learner, strict=False):
            if look and k % look == 0:
                looks.setdefault(k, [None] * n_ranks)[comm.rank] = learned.copy()
        return learned

    with np.errstate(over="ignore", invalid="ignore"):
        models = world.run(program)
    looks = {k: np.array(each) for k, each in looks.items()}
    return SimpleNamespace(models=np.array(models), looks=looks, world=world)


def outputs(model: np.ndarray, images) -> np.ndarray:
    """The outputs (images, 10) of the network with these parameters, for the test images."""
    params, tests = Parameters(Network(), flat=model), images.test_images
    batches = np.array_split(tests, len(tests) // 256 + 1)
    made = (forward(KERNELS["vector"], params, x)["dense_sigmoid"].copy() for x in batches)
    return np.concatenate([*made])


@figure
def lines(curves: Mapping[str, Sequence[float]], x: str, y: str) -> Axes:
    """Draw lines over steps from 1 on, both logarithmic; "fixed" ones are dashed."""
    (_, ax), ends = plt.subplots(figsize=(7, 3)), []
    for color, (name, values) in zip(colors(list(curves)), curves.items(), strict=True):
        dashed = "--" if "fixed" in name else "-"
        ax.plot(np.arange(1, len(values) + 1), values, dashed, color=color, linewidth=1.5)
        ends.append((len(values), values[-1], name, color))
    ax.set(xlabel=x, ylabel=y, xscale="log", yscale="log")
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, ends)
    return ax


def frame(values: Mapping[str, np.ndarray], graphs: Mapping, errors: Mapping, lam: Mapping):
    """A figure: models of ranks on circles, whom they hear next, and how far apart they were."""
    with style():
        page = Figure((7.2, 5.0))
        grid = page.add_gridspec(2, len(values), height_ratios=(3, 2))
        below = page.add_subplot(grid[1, :])
        for k, (name, model) in enumerate(values.items()):
            ax, n = page.add_subplot(grid[0, k]), len(model)
            x, y = (f(2 * np.pi * np.arange(n) / n) for f in (np.sin, np.cos))
            for i, j in zip(*np.nonzero(graphs[name]), strict=True):
                ax.plot(x[[i, j]], y[[i, j]], color="#999999", linewidth=0.6)
            ax.vlines(x, y, y + 2.5 * model, color=COLORS["threads"], linewidth=6)
            ax.plot(x, y, "o", color=INK, markersize=3)
            ax.set(xlim=(-1.3, 1.3), ylim=(-1.2, 3.6), title=name)
            ax.set_axis_off()
            shown = np.arange(5 if lam[name] > 0.01 else 1)
            line = below.semilogy(errors[name][0] * lam[name] ** shown, "--", linewidth=0.8)
            there = [error for error in errors[name] if error > 1e-9]
            below.semilogy(there, "o-", color=line[0].get_color(), label=name)
        below.set(xlabel="meetings", ylabel="consensus error", ylim=(0.01, 2), xticks=range(5))
        below.legend(title="dashed: by λ", fontsize=8, loc="upper right", ncols=3)
    return page


@figure
def race(curves: Mapping, costs: Mapping, titles: Sequence[str], ends: Mapping) -> np.ndarray:
    """Draw accuracy over what steps cost, below it points over the first one, 95 % intervals."""
    page, axes = plt.subplots(2, len(costs), figsize=(10, 5), sharex="col", sharey="row")
    hues = [INK, *colors(list(curves)[1:])]
    for (top, low), (unit, each), first in zip(axes.T, costs.items(), titles, strict=True):
        for color, (name, (at, share)) in zip(hues, curves.items(), strict=True):
            top.plot(at * each[name], 100 * share, color=color, linewidth=1.3, label=name)
            low.errorbar(at[-1] * each[name], *ends[name], fmt="o", color=color, capsize=3)
        wide = max(each.values()) > 10 * min(each.values())
        low.set(xscale="log" if wide else "linear", xlabel=unit)
        top.set_title(first, fontsize=9)
    axes[0, 0].set(ylabel="% of test images right")
    axes[1, 0].set(ylabel="points over data\nparallelism, same steps")
    page.legend(*top.get_legend_handles_labels(), fontsize=8, loc="outside right upper")
    return axes


@kinds.formula(
    lambda rng: {"rate": float(rng.uniform(0.01, 0.5)), "curvature": float(rng.uniform(0.1, 3.5))},
    "A step is x − rate · curvature · x: what does the theory call that product?",
    "Put rate · curvature in the place of η.",
)
def largest(rate, curvature):
    """Only the product of rate and curvature matters: it is η of the parabola of curvature 1."""
    return (4 - 2 * rate * curvature) / (4 - rate * curvature)


def as_meeting(meet) -> str:
    """What is wrong with a mean of three in a ring, in words; nothing if it is right."""
    for n_ranks, eager in ((5, 65536), (5, 0), (4, 0), (3, 0)):
        start = kinds.generator().normal(size=(n_ranks, 3))
        models = start.copy()
        World(n_ranks, Link(eager=eager)).run(lambda comm, m=models: meet(comm, m[comm.rank]))
        right = (start + np.roll(start, 1, axis=0) + np.roll(start, -1, axis=0)) / 3
        if not np.allclose(models, right):
            return f"{n_ranks} ranks: off by up to {np.abs(models - right).max():.2g}"
    return ""


@kinds.tested(
    as_meeting,
    "A long message waits for its receiver. Where are all ranks while they wait?",
    "`comm.Sendrecv(x, right, 0, from_left, left, 0)` sends and receives at once.",
)
def ring_mean(comm, x):
    """All were in Send, and nobody in Recv: short messages go ahead unasked, long ones do not."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    from_left, from_right = np.empty_like(x), np.empty_like(x)
    comm.Sendrecv(x, right, 0, from_left, left, 0)
    comm.Sendrecv(x, left, 0, from_right, right, 0)
    x[:] = (x + from_left + from_right) / 3


def as_mixing(weigh) -> str:
    """What is wrong with a function that makes mixing matrices, tried on stars and a kite."""
    kite = (5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)])
    for n, edges in (kite, *((n, [(0, k) for k in range(1, n)]) for n in (2, 5, 200))):
        got = np.asarray(weigh(n, edges), float)
        if got.shape != (n, n):
            return f"for {n} ranks the matrix is {got.shape}, and should be ({n}, {n})"
        edge = np.zeros((n, n), bool)
        edge[tuple(np.transpose(edges))] = True
        free, rows, columns = ~(edge | edge.T | np.eye(n, dtype=bool)), got.sum(1), got.sum(0)
        second = np.sort(abs(np.linalg.eigvals(got)))[-2]
        for wrong, said in (
            ((got < -1e-12).any(), f"a weight is negative: {got.min():.2g}"),
            (got[free].any(), "ranks that are not neighbours have a weight"),
            (not np.allclose(rows, 1), f"the rows add up to {rows.round(3)}"),
            (not np.allclose(columns, 1), f"rows add up to 1, columns to {columns.round(3)}"),
            (second > 1 - 1e-6, "however often ranks mix, they never agree"),
        ):
            if wrong:
                return f"{n} ranks, edges {str(edges[:5])[1:-1]}{', …' * (len(edges) > 5)}: {said}"
    return ""


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


def as_round(fedavg) -> str:
    """What is wrong with a round of federated averaging, in words; nothing if it is right."""
    n_images, part = np.array([10, 30, 5, 200, 80]), np.array([True, True, False, True, False])
    goals = kinds.generator().normal(size=(5, 4))

    def program(comm):
        x, me = np.zeros(4), comm.rank
        fedavg(comm, x, lambda x: 0.5 * (x - goals[me]), 3, int(n_images[me]), bool(part[me]))
        return x

    got, ends = np.array(World(5).run(program)), goals * (1 - 0.5**3)
    if np.ptp(got, axis=0).max() > 1e-9:
        return "ranks end a round with different models: all get the mean, also who sat out"
    for wrong, weights in (("images do not count", part), ("who sat out counts", n_images)):
        if np.allclose(got[0], weights @ ends / weights.sum()):
            return wrong
    off = np.abs(got[0] - np.average(ends, 0, n_images * part)).max()
    return f"the mean is off by up to {off:.2g}" * bool(off > 1e-9)


@kinds.tested(
    as_round,
    "Who sits out has weight 0, but calls the collective all the same.",
    "One Allreduce is enough: append the weight to weight · x, and divide by the last number.",
)
def challenge_fedavg(comm, x, downhill, n_steps, n_images, takes_part):
    """Sums of weight · x and of weights in one message; who sat out adds zeros."""
    for _ in range(n_steps * takes_part):
        x -= downhill(x)
    mine = np.append(x, 1.0) * n_images * takes_part
    total = np.empty_like(mine)
    comm.Allreduce(mine, total)
    x[:] = total[:-1] / total[-1]
