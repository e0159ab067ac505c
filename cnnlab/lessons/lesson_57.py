"""Lesson 57: trainings on virtual ranks, pictures, and the exercises."""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from cnnlab import data
from cnnlab.check import kinds
from cnnlab.distributed.trial import Counting
from cnnlab.kernels import KERNELS
from cnnlab.measure import timing
from cnnlab.network import Dense, Network, ReLU, Sigmoid
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import LAYERS, colors, figure, label_ends
from cnnlab.ranks.virtual import Status, World
from cnnlab.training import Replica, Sgd
from cnnlab.training.loop import accuracy

WIDTHS = {"MLP": 32, "wide MLP": 256}
PERCEPTRONS = {k: Network((Dense(n), ReLU(), Dense(10), Sigmoid())) for k, n in WIDTHS.items()}
NETWORKS = {"CNN": Network()} | PERCEPTRONS
RANKS, BATCH, STEPS = 4, 64, 400


@functools.cache
def images() -> data.Dataset:
    """MNIST, or, where there is no network, the digits of scikit-learn."""
    return data.load("auto", 11_000, 2000)


class Workload:
    """A network and images: a start, gradients and an accuracy, from a seed.

    `held` tests on training images that are held out: rates are chosen on them. `by_label` sorts
    the images of each batch by label, so that ranks have digits of their own.
    """

    def __init__(self, network: str, seed: int = 0, held: bool = False, by_label: bool = False):
        self.images, x, labels = images().name, images().train_images, images().train_labels
        n, params = 8 * len(x) // 11, NETWORKS[network].parameters(seed)
        self.start, self.n = params.flat.copy(), params.flat.size
        self.replica = Replica(KERNELS["vector"], params, x[:n], labels[:n], BATCH, Sgd(1.0))
        self.test = (x[n:], labels[n:]) if held else (images().test_images, images().test_labels)
        rng, each = np.random.default_rng(seed), n // BATCH
        epochs = [rng.permutation(n)[: each * BATCH] for _ in range(-(-STEPS // each))]
        self.batches = np.concatenate(epochs).reshape(-1, BATCH)
        if by_label:
            order = labels[self.batches].argsort(axis=1, kind="stable")
            self.batches = np.take_along_axis(self.batches, order, axis=1)

    def gradient(self, params: np.ndarray, step: int, rank: int, n_ranks: int) -> np.ndarray:
        """Float32 (n), summed over this rank's share of the images of a step."""
        self.replica.params.flat[:] = params
        self.replica.gradients(np.array_split(self.batches[step], n_ranks)[rank])
        return self.replica.grads.flat.copy()

    def accuracy(self, params: np.ndarray) -> float:
        """Of images to test on."""
        self.replica.params.flat[:] = params
        return accuracy("vector", self.replica.params, *self.test)


class Tape:
    """A rank's communicator that keeps what calls receive; once `again` is set, it plays that."""

    def __init__(self, comm):
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.kept, self.again = [], None

    def Sendrecv(self, sent, dest, tag, received, *source) -> None:
        """Send and receive; again, receive what came before."""
        into, status = received.reshape(-1).view(np.uint8), Status()
        if self.again:
            part = next(self.again)
            into[: part.size] = part
        else:
            self.comm.Sendrecv(sent, dest, tag, received, *source, status)
            self.kept.append(into[: status.n_bytes].copy())

    def Allreduce(self, sent, received) -> None:
        """Add up; again, add once: a rank adds (P − 1)/P of the numbers."""
        if self.again:
            np.add(sent, sent, out=received)
        else:
            self.comm.Allreduce(sent, received)


def parts(add_ups: Mapping, task: Workload, links: Sequence, n_ranks: int = RANKS) -> dict:
    """By name, seconds of a step: to compute a gradient, to choose and add, messages on each link.

    The first two are the shortest of 21 calls, in turns; messages take virtual time.
    """
    calls = {"gradient": functools.partial(task.gradient, task.start, 0, 0, n_ranks)}
    messages = {}

    def program(comm, on_rank):
        tape, gradient = Tape(comm), task.gradient(task.start, 0, comm.rank, n_ranks)
        add_up = on_rank(tape, task.n)
        add_up(gradient, 0)
        return tape, functools.partial(add_up, gradient, 0)

    for name, on_rank in add_ups.items():
        worlds = [World(n_ranks, link) for link in links]
        tape, calls[name] = [world.run(program, on_rank)[0] for world in worlds][-1]
        tape.again = itertools.cycle(tape.kept)
        messages[name] = [world.seconds for world in worlds]
    taken = {name: min(one.samples) for name, one in timing.compare(calls, repeats=21).items()}
    return {name: [taken["gradient"], taken[name], *messages[name]] for name in add_ups}


def steps(top_k: type, merge: Callable, n: int = 16, k: int = 5) -> Stepper:
    """A stepper: four ranks choose k of n numbers, and add up their streams by doubling; twice."""
    rng, choosers, frames, captions = np.random.default_rng(3), [top_k(n) for _ in range(4)], [], []

    def frame(caption: str, rows, blue) -> None:
        """Numbers (rank, index), of which some are blue."""

        def draw(ax):
            ax.imshow(blue, ListedColormap(["white", LAYERS[2]]), vmin=0, vmax=1, aspect="auto")
            for r, i in np.argwhere(rows):
                ax.text(i, r, f"{rows[r][i]:.0f}", ha="center", va="center", fontsize=7)
            ax.set(xticks=range(n), yticks=range(4), xlabel="index; blue: sent", ylabel="rank")
            ax.tick_params(labelsize=7, length=0, grid_alpha=0)

        frames.append(draw)
        captions.append(caption)

    for step in (1, 2):
        gradients = np.round(rng.normal(0, 9, (4, n))).astype(np.float32)
        held = np.array([c.residual + g for c, g in zip(choosers, gradients, strict=True)])
        what = "a gradient, added to the residual" if step > 1 else "a gradient"
        frame(f"Step {step}: on each rank {what}.", held, np.zeros((4, n)))
        streams = [c.choose(g, k) for c, g in zip(choosers, gradients, strict=True)]
        chosen = np.array([np.isin(range(n), i) for i, _ in streams])
        frame(f"The {k} largest go into a stream; the residual keeps the rest.", held, chosen)
        for distance in (1, 2):
            size = 8 * max(i.size for i, _ in streams)
            form = f"streams of {size} bytes" if size <= 4 * n else f"the arrays, {4 * n} bytes"
            streams = [merge(*streams[r], *streams[r ^ distance]) for r in range(4)]
            rows = np.zeros((4, n))
            for row, (i, values) in zip(rows, streams, strict=True):
                row[i] = values
            now = 8 * max(i.size for i, _ in streams)
            what = f"Round {distance}: ranks {distance} apart exchange {form} and merge"
            frame(f"{what}; a stream has {now} bytes now.", rows, rows != 0)
    return stepper(frames, title="Top-k of four ranks fills in", captions=captions)


@figure
def panels(curves: Sequence[Mapping[str, tuple]], looks: Sequence[Mapping]) -> Sequence[Axes]:
    """Draw lines, each an x (n), a y (n) and perhaps a format, in panels; names at their ends."""
    _, axes = plt.subplots(1, len(looks), figsize=(4 + 2.6 * len(looks), 3.4))
    names = list(dict.fromkeys(itertools.chain(*curves)))
    shades = dict(zip(names, colors(names), strict=True))
    for ax, panel, look in zip(axes, curves, looks, strict=True):
        for name, (x, y, *form) in panel.items():
            ax.plot(x, y, *form, color=shades[name], linewidth=1.6, markersize=4)
        ax.set(**look)
        ax.minorticks_off()
        ax.figure.canvas.draw()  # limits are final now
        if ax is axes[-1] or set(panel) != set(curves[-1]):
            label_ends(ax, [(x[-1], y[-1], k, shades[k]) for k, (x, y, *_) in panel.items()])
    return axes


def as_split(answer: Callable) -> str:
    """What is wrong with a sparse allreduce by blocks; nothing if it is right."""
    rng = kinds.generator()
    for size, n, k in ((1, 9, 3), (3, 20, 6), (8, 4000, 1000)):
        world, streams, expected = Counting(size), [], np.zeros(n)
        for _ in range(size):
            indices = np.sort(rng.choice(n, k, replace=False)).astype(np.int32)
            streams.append((indices, rng.normal(size=k).astype(np.float32)))
            expected[indices] += streams[-1][1]
        results = world.run(lambda comm, given, n: answer(comm, *given[comm.rank], n), streams, n)
        for rank, got in enumerate(results):
            if np.shape(got) != (n,) or not np.allclose(got, expected, atol=1e-4):
                return f"rank {rank} of {size} has another sum"
        if (n_bytes := world.sent.sum(1).max()) > 9 * n + 2000:  # by doubling, it is 9.6 n
            return f"one of {size} ranks sends {n_bytes:,} bytes, {9 * n:,} are enough"
    return ""


@kinds.tested(
    as_split,
    "np.searchsorted(indices, bounds) says where a stream is to be cut.",
    "comm.alltoall(parts) sends part r to rank r; comm.allgather(block) brings all blocks to all.",
)
def split(comm, indices, values, n):
    """Each number goes to its owner alone, and only sums go to all."""
    from itertools import pairwise

    import numpy as np

    bounds = n * np.arange(comm.size + 1) // comm.size
    cuts = np.searchsorted(indices, bounds)
    parts = [(indices[a:b], values[a:b]) for a, b in pairwise(cuts)]
    block = np.zeros(n, np.float32)
    for some, numbers in comm.alltoall(parts):
        block[some] += numbers
    return np.concatenate(comm.allgather(block[bounds[comm.rank] : bounds[comm.rank + 1]]))


def as_corrected(answer: Callable) -> str:
    """What is wrong with momentum correction; nothing if it is right."""
    rng, arrays = kinds.generator(), np.zeros((4, 12))
    bias = rng.normal(size=12)
    for step in range(20):
        gradient, sent = bias + 0.5 * rng.normal(size=12), np.zeros((2, 12))
        for k, rule in enumerate((correction.model(), answer)):
            indices, values = rule(*arrays[2 * k : 2 * k + 2], gradient.copy(), 3, 0.9)
            sent[k, indices] = values
        if not np.allclose(*sent):
            right, got = ([f"{x:.2f} at {i}" for i, x in enumerate(row) if x] for row in sent)
            return f"step {step}: expected {', '.join(right)}, got {', '.join(got)}"
    return ""


@kinds.tested(
    as_corrected,
    "Follow a weight whose gradient is small and always the same. When does it go out?",
    "It waits in the residual. By which array must be chosen?",
)
def correction(velocity, residual, gradient, k, momentum):
    """What waits in the residual must be asked, or small steady gradients never go out."""
    import numpy as np

    velocity *= momentum
    velocity += gradient
    residual += velocity
    indices = np.argsort(-abs(residual), kind="stable")[:k]
    values = residual[indices]
    velocity[indices] = residual[indices] = 0
    return indices, values


def challenge(mine: Callable, trained: Callable, rate: float, goal: float, fewest: float) -> None:
    """Train the CNN with five seeds and a sum of one's own; is it as good, with fewer bytes?"""
    if kinds.empty(mine):
        return print("challenge: not yet answered")
    rows = [trained(Workload("CNN", seed), mine, rate=rate)[-1] for seed in range(5)]
    n_bytes, reached = np.mean(rows, axis=0)
    sign = "✓" if reached >= goal and n_bytes < fewest else "✗"
    said = f"{reached:.1f} %, {n_bytes:,.0f} bytes"
    return print(f"{sign} {said}; asked: {goal:.1f} %, fewer than {fewest:,.0f}")
