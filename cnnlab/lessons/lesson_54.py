"""Lesson 54: trainings with the page's own server, their pictures, and the exercises."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.data import load
from cnnlab.kernels import KERNELS
from cnnlab.network import Network
from cnnlab.plots.style import colors, figure, label_ends
from cnnlab.ranks import world as real_world
from cnnlab.ranks.virtual import World
from cnnlab.training import Replica, Sgd

NETWORK = "5us,10GB/s"  # a link of its own between any two ranks
SIZE = 8  # images of a gradient
SECONDS = 20e-6 + 2.5e-6 * SIZE  # of a gradient: one core of today


class Parabola:
    """In place of a network: n numbers x, the loss ½x² of the first, and the gradient x."""

    def __init__(self, n: int = 1):
        self.start = np.ones(n, np.float32)

    def gradient_of(self, params: np.ndarray, images: None) -> np.ndarray:
        return params.copy()

    def draws(self, worker: int, n_workers: int) -> Callable:
        return lambda: None

    def loss(self, params: np.ndarray) -> float:
        return float(params[0]) ** 2 / 2


class TrainingTask:
    """The course's network and images: a start, gradients, draws and losses, from a seed."""

    def __init__(self, images, seed: int = 0):
        sets = (images.train_images, images.train_labels), (images.test_images, images.test_labels)
        params, how = Network().parameters(seed), (SIZE, Sgd(1.0))
        self.start = params.flat.copy()
        self.train, self.test = (Replica(KERNELS["vector"], params, *s, *how) for s in sets)
        self.order = np.random.default_rng(seed).permutation(len(images.train_images))

    def gradient_of(self, params: np.ndarray, images: np.ndarray) -> np.ndarray:
        """The mean gradient of the images of these numbers, float32 (n)."""
        self.train.params.flat[:] = params
        self.train.gradients(images)
        return self.train.grads.flat / np.float32(len(images))

    def draws(self, worker: int, n_workers: int) -> Callable:
        """A function that returns a worker's next SIZE images: of W workers, every W-th batch."""
        batches = itertools.count(worker - 1, n_workers)
        return lambda: np.take(self.order, SIZE * next(batches) + np.arange(SIZE), mode="wrap")

    def loss(self, params: np.ndarray) -> float:
        """The loss of an image, over at most 500 test images."""
        chosen = np.arange(min(500, len(self.test.images)))
        self.test.params.flat[:] = params
        return self.test.gradients(chosen) / len(chosen)


class Run(NamedTuple):
    """A training: rows of `looks` are updates, virtual seconds and the loss."""

    params: np.ndarray
    missed: Sequence[int]
    looks: np.ndarray
    world: World


def run(work, serve, task, n_workers, staleness, n_updates, step, n_servers=1, **how) -> Run:
    """Servers and workers in the virtual world, each gradient SECONDS long; `how` as of World."""
    world = World(n_servers + n_workers, how.pop("network", NETWORK), **how)
    looks, updates = [(0, 0.0, task.loss(task.start))], itertools.count(1)
    params = task.start.copy()

    def watched(comm, block, gradient, missed):
        step(block, gradient, missed)
        if comm.rank == 0 and (k := next(updates)) % max(1, n_updates // 10) == 0:
            looks.append((k, comm.clock(), task.loss(params)))

    def program(comm):
        def gradient_of(params, images):
            comm.compute(SECONDS)
            return task.gradient_of(params, images)

        if comm.rank >= n_servers:
            return work(comm, gradient_of, task.draws(comm.rank - n_servers + 1, n_workers))
        block = np.array_split(params, n_servers)[comm.rank]
        return serve(comm, block, n_updates, staleness, partial(watched, comm))

    with np.errstate(over="ignore", invalid="ignore"):
        missed = world.run(program)[0]
    return Run(params, missed, np.array(looks), world)


def on_ranks(work: Callable, serve: Callable, staleness: float, n_updates: int, step: Callable):
    """On a real rank, the same with a few digits: rank 0 returns parameters and `missed`."""
    comm, task = real_world(), TrainingTask(load("digits", 400, 50))
    if comm.rank > 0:
        return work(comm, task.gradient_of, task.draws(comm.rank, comm.size - 1))
    params = task.start.copy()
    return params, serve(comm, params, n_updates, staleness, step)


@figure
def timelines(runs: Mapping[str, Run], draw: Callable[[Axes, Run], None]) -> Sequence[Axes]:
    """Draw runs, a panel for each, in which `draw` shows who computes and who waits when."""
    _, axes = plt.subplots(len(runs), 1, figsize=(8, 0.9 + 1.2 * len(runs)), sharex=True)
    for ax, (name, one) in zip(axes, runs.items(), strict=True):
        draw(ax, one)
        ax.set_title(name, fontsize=10, loc="left")
        labels = ["server", *(f"worker {rank}" for rank in range(1, one.world.size))]
        ax.set_yticks(range(one.world.size), labels, fontsize=8)
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
    axes[-1].set(xlabel="virtual µs; green: computing, grey: waiting for a message", xlim=(0, None))
    return axes


@figure
def lines(curves: Mapping[str, tuple], x: str, y: str, scale: str = "linear") -> Axes:
    """Draw lines, each an x (n) and a y (n) or (seeds, n): thin the seeds, thick the mean."""
    _, ax = plt.subplots(figsize=(7, 3.1))
    ends = []
    for color, (name, (at, values)) in zip(colors(list(curves)), curves.items(), strict=True):
        rows = np.atleast_2d(values)
        ax.plot(at, rows.T, color=color, linewidth=0.6, alpha=0.5)
        ax.plot(at, rows.mean(0), color=color, linewidth=2)
        ends.append((at[-1], rows.mean(0)[-1], name, color))
    ax.set(xlabel=x, ylabel=y, yscale=scale, xlim=(0, None))
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, ends)
    return ax


def work(comm, gradient_of, draw):
    while (params := comm.recv(source=0)) is not None:
        comm.send((comm.rank, gradient_of(params, draw())), dest=0)


def as_served(serve) -> str:
    """What is wrong with a server, in words; nothing if it finds what the model answer finds."""
    for staleness, speed in ((0, {}), (2, {1: 3.0}), (math.inf, {1: 3.0})):
        how = Parabola(), 3, staleness, 30, lambda x, g, missed: np.subtract(x, g / 9, out=x)
        got, right = (run(work, one, *how, speed=speed) for one in (serve, replies.model()))
        if not np.allclose(got.params, right.params):
            x = f"x is {got.params[0]:.4f}, not {right.params[0]:.4f}"
            return f"staleness {staleness}, 30 gradients of a parabola: {x}"
    return ""


@kinds.tested(
    as_served,
    "Follow one worker at staleness 0: which gradients are in the parameters that it gets?",
    "A worker must not be answered before its own gradient has been applied.",
)
def replies(comm, params, n_updates, staleness, step):
    """Apply first, then answer: it is enough to move `step` up, before the inner loop."""
    clock = dict.fromkeys(range(1, comm.size), 0)
    waiting, read_at, missed = set(clock), {}, []
    for update in range(n_updates):
        for worker in sorted(waiting):
            if clock[worker] <= min(clock.values()) + staleness:
                comm.send(params, dest=worker)
                read_at[worker] = update
                waiting.remove(worker)
        worker, gradient = comm.recv()
        missed.append(update - read_at[worker])
        step(params, gradient, missed[-1])
        clock[worker] += 1
        waiting.add(worker)
    for worker in clock:
        if worker not in waiting:
            comm.recv(source=worker)
        comm.send(None, dest=worker)
    return missed


def as_aware(step) -> str:
    """What is wrong with a step along a stale gradient, in words; nothing if it is right."""
    for missed in (0, 1, 2, 9):
        params, gradient = np.ones(3, np.float32), np.full(3, 2, np.float32)
        step(params, gradient, missed, 0.5)
        if not (np.allclose(params, 1 - 1 / max(1, missed)) and (gradient == 2).all()):
            return f"missed = {missed}: a step of {1 - params[0]:.3g}, not {1 / max(1, missed):.3g}"
    return ""


@kinds.tested(
    as_aware,
    "A gradient that has missed ten others moves the parameters, in place, a tenth as far.",
    "What is 1 over missed, if nothing was missed? Such a gradient counts whole.",
)
def aware(params, gradient, missed, rate):
    """One that has missed n others steps at a rate n times smaller, a fresh one at the full."""
    params -= rate / max(1, missed) * gradient


def as_backup(serve) -> str:
    """What is wrong with a server that takes the first 4 of 6 gradients; nothing if it is right."""
    sums = []

    def step(params, total, missed):
        sums.append(float(total[0]) / float(params[0]))
        params -= np.float32(0.1) * total

    slow = run(work, serve, Parabola(), 6, 2, 20, step, speed={1: 9.0, 2: 9.0}).world.seconds
    if len(sums) != 20 or not np.allclose(sums, 4):
        got = np.round(sums, 2)
        return f"20 steps, each along 4 gradients of the present parameters: got {got}"
    return f"slow workers hold it up, for {slow / SECONDS:.0f} gradients" * (slow > 40 * SECONDS)


@kinds.tested(
    as_backup,
    "Note for each worker in which round it got its parameters; a late gradient counts for none.",
    "A late worker waits for the next round. After the last, one may be under way, as in `serve`.",
)
def challenge_backup(comm, params, n_rounds, n_backup, step):
    """Late gradients are thrown away, so two workers may be as slow as they like."""
    waiting, read_at = set(range(1, comm.size)), {}
    for number in range(n_rounds):
        for worker in sorted(waiting):
            comm.send(params, dest=worker)
            read_at[worker] = number
        waiting, gradients = set(), []
        while len(gradients) < comm.size - 1 - n_backup:
            worker, gradient = comm.recv()
            waiting.add(worker)
            if read_at[worker] == number:
                gradients.append(gradient)
        step(params, sum(gradients), 0)
    for worker in range(1, comm.size):
        if worker not in waiting:
            comm.recv(source=worker)
        comm.send(None, dest=worker)
