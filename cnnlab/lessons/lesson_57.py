"""Lesson 57: trainings on virtual ranks, pictures, and the exercises."""

import functools
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from cnnlab import data
from cnnlab.check import kinds
from cnnlab.distributed.trial import Counting
from cnnlab.kernels import KERNELS
from cnnlab.network import Dense, Network, ReLU, Sigmoid
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import LAYERS, colors, figure
from cnnlab.ranks.virtual import Status
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


def steps(top_k: type, merge: Callable, pack: Callable, unpack: Callable) -> Stepper:
    """A stepper: four ranks choose 5 of 16 numbers, and add up their streams by doubling; twice."""
    n, k, rng, choosers = 16, 5, np.random.default_rng(3), [top_k(16) for _ in range(4)]
    frames, captions = [], []

    def frame(caption: str, blue, *tables) -> None:
        """Numbers (rank, index) below each other, of which some are blue."""

        def draw(ax):
            ax.imshow(blue, ListedColormap(["white", LAYERS[2]]), vmin=0, vmax=1, aspect="auto")
            for r, i in np.ndindex(4, n):
                text = "\n".join(f"{each[r][i]:.0f}" for each in tables if each[r][i])
                ax.text(i, r, text, ha="center", va="center", fontsize=7)
            ax.set(xticks=range(n), yticks=range(4), xlabel="index", ylabel="rank")
            ax.tick_params(labelsize=7, length=0, grid_alpha=0)

        frames.append(draw)
        captions.append(caption)

    for step in (1, 2):
        gradients = np.round(rng.normal(0, 9, (4, n))).astype(np.float32)
        kept = np.array([c.residual for c in choosers])
        what = ", and below them the residuals" * (step > 1)
        frame(f"Step {step}: gradients{what}.", np.zeros((4, n)), gradients, kept)
        streams = [c.choose(g, k) for c, g in zip(choosers, gradients, strict=True)]
        chosen = np.array([np.isin(range(n), i) for i, _ in streams])
        frame(f"Added; the {k} largest go out (blue), the rest stays.", chosen, gradients + kept)
        for distance in (1, 2):
            sent = [pack(i, v, n) for i, v in streams]
            forms = [f"{r}: {4 * m.size}{' (whole)' * int(m[0] < 0)}" for r, m in enumerate(sent)]
            streams = [merge(*streams[r], *unpack(sent[r ^ distance], n)) for r in range(4)]
            rows = np.array([np.bincount(i, values, n) for i, values in streams])
            what = f"Round {distance}, with the rank {distance} away; bytes sent by rank "
            frame(f"{what}{', '.join(forms)}. Blue: the sums so far.", rows != 0, rows)
    return stepper(frames, title="Top-k of four ranks fills in", captions=captions)


@figure
def panels(curves: Sequence[Mapping[str, tuple]], looks: Sequence[Mapping]) -> Sequence[Axes]:
    """Draw lines, each an x (n), a y (n) and perhaps a format, in panels; names at their ends."""
    _, axes = plt.subplots(1, len(looks), figsize=(4 + 2.6 * len(looks), 3.4))
    for ax, panel, look in zip(axes, curves, looks, strict=True):
        for shade, (name, (x, y, *form)) in zip(colors(panel), panel.items(), strict=True):
            ax.plot(x, y, *form, label=name, color=shade, linewidth=1.6, markersize=4)
        ax.set(**look)
        ax.minorticks_off()
        ax.legend(fontsize=7)
    return axes


def as_split(answer: Callable) -> str:
    """What is wrong with a sparse allreduce by blocks; nothing if it is right."""
    rng = kinds.generator()
    for size, n, k in ((1, 9, 3), (3, 20, 6), (8, 4000, 1000)):
        world, expected = Counting(size), np.zeros(n)
        at = [np.sort(rng.choice(n, k, replace=False)).astype(np.int32) for _ in range(size)]
        values = rng.normal(size=(size, k)).astype(np.float32)
        np.add.at(expected, at, values)
        results = world.run(lambda c, at, v, n: answer(c, at[c.rank], v[c.rank], n), at, values, n)
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
    """What is wrong with a choice by layers with momentum correction; nothing if it is right."""
    rng, arrays, starts = kinds.generator(), np.zeros((4, 12)), [0, 2, 7, 12]
    bias = rng.normal(size=12) * ([4] * 7 + [1] * 5)
    for step in range(20):
        gradient, sent = bias + 0.5 * rng.normal(size=12), np.zeros((2, 12))
        for j, rule in enumerate((choose.model(), answer)):
            pairs = rule(*arrays[2 * j : 2 * j + 2], gradient.copy(), starts, 2, 0.9)
            indices, values = map(np.asarray, pairs)
            sent[j, indices.astype(int) if indices.dtype.kind == "f" else indices] = values
        if not np.allclose(*sent):
            return f"step {step}: expected {sent[0].round(2)}, got {sent[1].round(2)}"
    return ""


@kinds.tested(
    as_corrected,
    "Follow a weight whose gradient is small and always the same. When does it go out?",
    "np.argsort of a layer counts from the layer's start. What has not been sent, stays.",
)
def choose(velocity, residual, gradient, starts, k, momentum):
    """A small layer is no longer silent: what is largest is asked within each layer."""
    import numpy as np

    velocity *= momentum
    velocity += gradient
    residual += velocity
    layers = np.split(np.arange(residual.size), starts[1:-1])
    indices = np.concatenate([i[np.argsort(-abs(residual[i]))[:k]] for i in layers])
    values = residual[indices]
    velocity[indices] = residual[indices] = 0
    return indices, values


def as_merged(answer: Callable) -> str:
    """What is wrong with a merge of two streams that keeps the k largest; nothing if right."""
    rng = kinds.generator()
    for n, k in 4 * ((9, 3), (40, 12), (2000, 30)):
        at = [np.sort(rng.choice(n, k, replace=False)).astype(np.int32) for _ in range(2)]
        values, total = rng.normal(size=(2, k)).astype(np.float32), np.zeros(n)
        np.add.at(total, at, values)
        kept = np.sort(np.argsort(-abs(total))[:k])
        got = np.stack(answer(at[0], values[0], at[1], values[1], k))
        expected = np.stack([kept, total[kept]])
        if expected.shape != got.shape or not np.allclose(expected, got, atol=1e-6):
            return f"of {n} numbers, k = {k}: expected {expected[:, :3]} …, got {got[:, :3]} …"
    return ""


@kinds.tested(
    as_merged,
    "First the sum of both streams, then the choice: an index may be in both.",
    "np.unique(…, return_inverse=True) says where each index of the two stands in the sum.",
)
def merge_largest(i, a, j, b, k):
    """Each message has k numbers, whatever the ranks: what a merge rejects is a residual again."""
    import numpy as np

    indices, at = np.unique(np.concatenate([i, j]), return_inverse=True)
    values = np.bincount(at, np.concatenate([a, b])).astype(np.float32)
    kept = np.sort(np.argsort(-abs(values))[:k])
    return indices[kept], values[kept]


def challenge(mine: Callable, trained: Callable, rate: float, goal: float, fewest: float) -> None:
    """Train the CNN with five seeds and a sum of one's own; is it as good, with fewer bytes?"""
    if kinds.empty(mine):
        return print("challenge: not yet answered")
    rows = [trained(Workload("CNN", seed), mine, rate=rate)[-1] for seed in range(5)]
    n_bytes, reached = np.mean(rows, axis=0)
    said = f"{reached:.1f} %, {n_bytes:,.0f} bytes; asked: {goal:.1f} %, fewer than {fewest:,.0f}"
    return print("✓" if reached >= goal and n_bytes < fewest else "✗", said)
