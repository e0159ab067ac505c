"""The exercises of lesson 22."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab.check import kinds
from cnnlab.check.verdict import differences
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import KERNELS
from cnnlab.measure.timing import Ratio, Timing
from cnnlab.network import Network
from cnnlab.plots.style import ERRORS, GREY, aside, colors, label_ends, measured
from cnnlab.ranks import measure, world
from cnnlab.ranks.cluster import cluster
from cnnlab.runtime import thread_pool
from cnnlab.training import Diverged, Method, Replica, Sgd, train


def taken_once(sum_over_shares) -> str:
    """What is wrong with a sum of gradients over shares, for many numbers of them, in words."""
    x, labels = kinds.generator().random((10, 3)), np.arange(10)
    expected = (x * (1 + labels[:, None])).sum(0)
    for size in (1, 2, 3, 4, 10, 13):
        asked = []

        def gradients(part, its_labels, asked=asked):
            if len(part) == 0 or len(part) != len(its_labels):
                raise ValueError(f"got {len(part)} images and {len(its_labels)} labels")
            asked.append(len(part))
            return (part * (1 + its_labels[:, None])).sum(0)

        got = np.asarray(sum_over_shares(gradients, x, labels, size), float)
        wrong = differences("sum", got, expected, np.full(3, 1e-9))
        if len(asked) != min(size, 10) or max(asked) - min(asked) > 1:
            wrong = wrong or f"asked for shares of {asked} images"
        if wrong:
            return f"on {size} ranks: {wrong}"
    return ""


@kinds.formula(
    lambda rng: {"batch": int(rng.integers(1, 1000))},
    "With as many ranks as images, what does each have?",
    "One image each; one rank more, and somebody has none.",
)
def ranks(batch):
    """As many ranks as images have one each."""
    return batch + 1


@kinds.formula(
    lambda rng: {"n_ranks": int(rng.integers(2, 100))},
    "A mean over a share divides by the images of the share, not by those of the batch.",
    "Each of the means is as large as the mean over the whole batch. How many are added?",
)
def factor(n_ranks):
    """A sum of as many means as there are ranks: divide by the ranks, or sum first."""
    return n_ranks


@kinds.tested(
    taken_once,
    "block(rank, size, len(x)) gives the share of a rank. What if it is empty?",
    "Add up gradients(x[first:last], labels[first:last]) over all ranks whose share is not empty.",
)
def shares(gradients, x, labels, size):
    """A rank without images adds nothing; it must not ask for the gradients of none."""
    from cnnlab.ranks.schedules import block

    total = 0
    for rank in range(size):
        first, last = block(rank, size, len(x))
        if first < last:
            total = total + gradients(x[first:last], labels[first:last])
    return total


# --- what a batch learns with the rate that suits it ----------------------------------------------


class Tuned(NamedTuple):
    """The best of some rates, and what each epoch came to with it: rows with an "accuracy"."""

    rate: float
    history: list[dict]

    @property
    def last(self) -> float:
        """The accuracy in the end; 0 where no rate learned."""
        return self.history[-1]["accuracy"] if self.history else 0.0


def tuned(data, batches: Sequence[int], rates: Sequence[float], epochs: int) -> dict[int, Tuned]:
    """For each batch, the rate whose test accuracy is the highest in the end."""
    return {
        n: max(
            (Tuned(rate, trained(data, n, rate, epochs)) for rate in rates), key=lambda t: t.last
        )
        for n in batches
    }


def trained(data, batch: int, rate: float, epochs: int) -> list[dict]:
    """The rows of a training, with the test accuracy as "accuracy"; none where it diverges."""
    try:
        history = train(data, batch=batch, rate=rate, epochs=epochs, progress=False).history
    except Diverged:
        return []
    return [row | {"accuracy": row["test_accuracy"]} for row in history]


def reached_by_all(result: Mapping[int, Tuned]) -> float:
    """The highest accuracy, in whole per cent, that every batch has reached."""
    best = (max((row["accuracy"] for row in one.history), default=0.0) for one in result.values())
    return math.floor(100 * min(best)) / 100


def epochs_to(target: float, one: Tuned) -> int:
    """The first epoch whose accuracy is the target; raises ValueError where none is."""
    for row in one.history:
        if row["accuracy"] >= target:
            return row["epoch"]
    raise ValueError(
        f"target: expected at most {one.last:.1%}, which was reached, got {target:.1%}"
    )


# --- times of data-parallel steps, by the way in which two ranks add up their gradients -----------

EIGHT = 8  # steps of a call, where threads work inside ranks


class ThroughPython(DataParallel):
    """Messages, with Python between the steps."""

    def loop(self, replica):
        """No compiled loop: `step` after `step`."""
        return None


class Overlapping(ThroughPython):
    """Data parallelism in two halves: one's message is on its way while the other is computed."""

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        """One step on the batch `chosen` of all ranks; the loss of this rank's share."""
        mine, grads, loss = chosen[self.share(len(chosen))], replica.grads.flat, 0.0
        halves = mine[: len(mine) // 2], mine[len(mine) // 2 :]
        sent, totals = np.empty((2, 2, grads.size), grads.dtype)  # kept while they are under way
        requests = []
        for half, own, total in zip(halves, sent, totals, strict=True):
            loss += replica.gradients(half)
            own[:] = grads
            requests.append(self.comm.Iallreduce(own, total))
        for request in requests:
            request.Wait()
        np.add(*totals, out=grads)
        replica.update(len(chosen))
        return loss


def samples(
    batches: Sequence[int], n_steps: int = 32, repeats: int = 11
) -> dict[str, Sequence[float]]:
    """Runs on every rank: seconds of `n_steps` steps, by way and batch, such as "memory 64".

    one rank : the whole batch on rank 0
    on their own : each rank its share, and nothing is said
    memory, message : gradients added up in shared memory, or by MPI
    through Python : by MPI, with Python between the steps
    overlap : the message of one half of the share while the other is computed
    allreduce : of as many gradients as there are, without a step
    """
    comm, net = world(), Network()
    images = np.random.default_rng(0).random((4096, *net.image_shape), np.float32)
    labels, order = np.arange(4096) % 10, np.random.default_rng(1).permutation(4096)

    def call(method, n):
        replica = Replica(KERNELS["vector"], net.parameters(), images, labels, n, Sgd(0.1))
        return functools.partial(method.steps, replica, np.resize(order, n_steps * n))

    algorithms = {"memory": DataParallel(comm), "message": DataParallel(comm, window=False)}
    algorithms |= {"through Python": ThroughPython(comm), "overlap": Overlapping(comm)}
    calls, (mine, total) = {}, (net.zeros().flat, net.zeros().flat)
    for n in batches:
        calls[f"one rank {n}"] = (lambda: None) if comm.rank > 0 else call(Method(), n)
        calls[f"on their own {n}"] = call(Method(), n // comm.size)
        calls |= {f"{way} {n}": call(method, n) for way, method in algorithms.items()}
    calls["allreduce"] = lambda: [comm.Allreduce(mine, total) for _ in range(n_steps)]
    return measure.alternately(comm, calls, repeats)


def ranks_or_threads(n: int, batch: int = 256, rounds: int = 4) -> list[Timing]:
    """A step on n ranks of one thread, and on one rank of n threads, in turn; needs an MPI."""
    result: dict[tuple[int, int], list[float]] = {(n, 1): [], (1, n): []}
    with cluster(n) as many, cluster(1, n_threads=n) as one:
        for _ in range(rounds):  # in turn, because the machine changes its speed
            result[n, 1] += many.run(with_threads, 1, batch)[0]
            result[1, n] += one.run(with_threads, n, batch)[0]
    return [
        Timing(f"{a} × {b}", tuple(s / EIGHT for s in group)) for (a, b), group in result.items()
    ]


def with_threads(n_threads: int, batch: int, repeats: int = 5) -> Sequence[float]:
    """Runs on every rank: seconds of eight steps on a batch, with threads inside the rank."""
    comm, net = world(), Network()
    strategy = KERNELS["threads" if n_threads > 1 else "vector"]
    images = np.random.default_rng(0).random((batch, *net.image_shape), np.float32)
    labels = np.arange(batch) % net.classes
    replica = Replica(strategy, net.parameters(), images, labels, batch, Sgd(0.1))
    method, order = DataParallel(comm), np.resize(np.arange(batch), EIGHT * batch)
    with thread_pool.threads(n_threads):
        return measure.alternately(comm, {"": lambda: method.steps(replica, order)}, repeats)[""]


# --- ratios over a size, such as an efficiency over the batch -------------------------------------


@measured
def ratios_by_size(
    sizes: Sequence[int], series: Mapping[str, Sequence[Ratio]], *, unit: str, ratio: str
) -> Axes:
    """Draw ratios with their intervals over sizes, and the line at 1.

    `unit` is what is counted along the axis of sizes, which is logarithmic, `ratio` the name of
    what is drawn.
    """
    _, ax = plt.subplots(figsize=(7, 3.6))
    labels = []
    for k, (name, color) in enumerate(zip(series, colors(list(series)), strict=True)):
        value, low, high = np.array([(r.value, r.low, r.high) for r in series[name]]).T
        errors = [value - low, high - value]
        x = np.array(sizes) * aside(k, len(series))
        ax.errorbar(x, value, errors, fmt="o-", color=color, markersize=4, **ERRORS)
        labels.append((x[-1], value[-1], name, color))
    ax.axhline(1, color=GREY, linestyle="--", linewidth=1.2)
    ax.set(xscale="log", xlabel=unit, ylabel=ratio)
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.set_ylim(0, None)
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, labels)
    return ax
