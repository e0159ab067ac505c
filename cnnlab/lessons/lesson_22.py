"""Lesson 22, data parallelism: what a rank trains with, drawings, and the exercises."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from joblib import wrap_non_picklable_objects
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from cnnlab.check import kinds
from cnnlab.kernels import KERNELS, composition
from cnnlab.kernels.registers import LANES  # noqa: F401
from cnnlab.measure.timing import Timing
from cnnlab.network import Network
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import GREY, INK, LAYERS, aside, colors, label_ends, measured
from cnnlab.ranks import world
from cnnlab.ranks.measure import alternately
from cnnlab.ranks.virtual import World
from cnnlab.ranks.virtual.cluster import VirtualCluster
from cnnlab.training import Replica, Sgd

VECTOR = KERNELS["vector"]
ALONE = SimpleNamespace(rank=0, size=1, Allreduce=lambda mine, total: None)  # nobody to add to

# --- what a rank trains with, and real ranks ------------------------------------------------------


def replica(data, seed: int = 0, batch: int = 1) -> Replica:
    """A rank's parameters, room for gradients, and the images; `batch` is for the package."""
    images = data.train_images, data.train_labels
    return Replica(VECTOR, Network().parameters(seed), *images, batch, Sgd(0.1))


def backward(trained: Replica, chosen: np.ndarray) -> Iterator[np.ndarray]:
    """Forward, then backward layer by layer: each layer's gradients, flat, once they are whole."""
    network, flat = trained.params.network, trained.grads.flat
    images, labels = VECTOR.take(trained.images, chosen), trained.labels[chosen]
    outputs = [*composition.forward(VECTOR, trained.params, images).values(), images]
    dy, last = np.empty_like(outputs[-2]), flat.size
    VECTOR.kernel("cross_entropy")(outputs[-2], labels, dy)
    for _, place, *around in composition.backwards(network, outputs, dy):
        grads = trained.grads.at(place)
        composition.layer_backward(VECTOR, place, trained.params.at(place), grads, *around)
        if grads:
            first = last - sum(array.size for array in grads)
            yield flat[first:last]
            last = first


def time(ranks, program: Callable) -> tuple[str, dict[str, Timing]]:
    """What the ranks of a cluster are called, and the times of calls, which program(comm) names."""
    whole = wrap_non_picklable_objects(program)  # with all that it uses of the notebook
    samples = ranks.run(lambda program: alternately(world(), program(world())), whole)[0]
    kind = "virtual ranks" if isinstance(ranks, VirtualCluster) else "ranks"
    return kind, {name: Timing(name, tuple(seconds)) for name, seconds in samples.items()}


# --- drawings -------------------------------------------------------------------------------------


@measured
def curves(x: Sequence, series: Mapping[str, Sequence], bounds: Mapping[str, Sequence], **axes):
    """Draw series over x, values alone or with the ends of their intervals, and bounds, in grey."""
    _, ax = plt.subplots(figsize=(7.2, 3.8))
    ends = [(x[-1], y[-1], name, GREY) for name, y in bounds.items()]
    for y in bounds.values():
        ax.plot(x, y, "--", color=GREY, lw=1.2)
    for k, (name, color) in enumerate(zip(series, colors(list(series)), strict=True)):
        rows, aside_by = np.array(series[name], float).reshape(len(x), -1), aside(k, 2)
        at = np.multiply(x, aside_by if "xscale" in axes else 1)
        ax.vlines(at, rows.min(1), rows.max(1), color=color, lw=1.2)
        ax.plot(at, rows[:, 0], "o-", color=color, markersize=4)
        ends.append((at[-1], rows[-1, 0], name, color))
    ax.set(**axes)
    ax.set_xticks(x, [f"{n:g}" for n in x])
    if ax.get_yscale() == "log":
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
        ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, [(x, np.clip(y, *ax.get_ylim()), *look) for x, y, *look in ends])
    return ax


def bars(ranks: World, computed: Sequence[str], sent: Sequence[str]) -> list[tuple]:
    """What rank 0 computes (row 0), its link carries (1): (row, word, begin, end), in order."""
    record, link = ranks.record, ranks.link
    work = [e for e in record.events if (e.rank, e.kind) == (0, "compute")]
    result = [(0, word, e.begin, e.end) for word, e in zip(computed, work, strict=True)]
    for word, m in zip(sent, (m for m in record.messages if m.source == 0), strict=True):
        result.append((1, word, m.end - link.latency - m.n_bytes / link.bandwidth, m.end))
    return result


def timeline(worlds: Mapping[str, tuple[World, Sequence[str], Sequence[str]]]) -> Stepper:
    """A stepper through timelines, a frame for each end of one of their `bars`."""
    timelines = {name: bars(*each) for name, each in worlds.items()}
    every = [bar for group in timelines.values() for bar in group]
    tints = dict(zip(dict.fromkeys(bar[1] for bar in every), LAYERS[1:], strict=False))
    frames, captions, last = [], [], max(bar[3] for bar in every)
    for now in sorted({bar[3] for bar in every}):
        said = {name: [] for name in timelines}
        for name, (row, word, _, end) in ((n, bar) for n in timelines for bar in timelines[n]):
            said[name] += [f"{word} {('computed', 'added up')[row]}"] * bool(end == now)
        text = "; ".join(f"{name}: {', '.join(news)}" for name, news in said.items() if news)
        captions.append(f"{1e6 * now:.0f} µs. {text}.")
        frames.append(functools.partial(draw_until, now, last, timelines, tints))
    return stepper(frames, title="A step on two ranks, seen on rank 0", captions=captions)


def draw_until(now: float, last: float, timelines: Mapping, tints: Mapping, ax: Axes) -> None:
    """Draw timelines up to a moment."""
    rows = {}
    for k, (name, group) in enumerate(timelines.items()):
        rows |= {2.3 * k: f"{name}\nrank 0", 2.3 * k + 1: "link"}
        for row, word, begin, end in group:
            left, width = 1e6 * begin, 1e6 * (min(end, now) - begin)
            if width > 0:
                y = 2.3 * k + row
                ax.broken_barh([(left, width)], (y - 0.4, 0.8), color=tints[word], ec="white")
            if width > 5e4 * last:
                ax.text(left + width / 2, y, word, ha="center", va="center", fontsize=7)
    ax.axvline(1e6 * now, color=INK, lw=1)
    ax.set_yticks(list(rows), list(rows.values()), fontsize=7)
    ax.set(xlim=(0, 1.02e6 * last), ylim=(max(rows) + 0.6, -0.6), xlabel="virtual µs")


# --- exercises ------------------------------------------------------------------------------------


class Toy:
    """A replica without a network: the gradients of an image are a row of `rows` (M, 7)."""

    def __init__(self, rows: np.ndarray):
        self.rows, self.most = rows, 0
        self.params, self.grads = (SimpleNamespace(flat=np.full(7, k)) for k in (1.0, np.nan))

    def gradients(self, chosen: np.ndarray) -> None:
        self.most = max(self.most, len(chosen))
        self.grads.flat[:] = self.rows[chosen].sum(0)


def wrong_accumulation(step: Callable) -> str:
    """What is wrong with a step that takes few images at once."""
    rows = kinds.generator().random((99, 7))
    for size, n, most in ((1, 7, 3), (2, 12, 3), (3, 20, 4), (5, 4, 2)):
        toys, ranks, least = [Toy(rows) for _ in range(size)], World(size), World(size)
        ranks.run(
            lambda c, toys=toys, at=(n, most): step(c, toys[c.rank], np.arange(at[0]), 0.5, at[1])
        )
        least.run(lambda comm: comm.Allreduce(np.ones(7), np.ones(7)))
        where, expected = f"{n} images on {size} rank{'s' * (size > 1)}", 1 - 0.5 * rows[:n].mean(0)
        if (at_once := max(toy.most for toy in toys)) > most:
            return f"{where}: {at_once} at once, where {most} have room"
        if not all(np.allclose(toy.params.flat, expected, rtol=1e-5) for toy in toys):
            return f"{where}, {most} at once: not the parameters of one rank"
        sent = len(ranks.record.messages), len(least.record.messages)
        if sent[0] > sent[1]:
            return f"{where}: {sent[0]} messages, where one allreduce sends {sent[1]}"
    return ""


@kinds.tested(
    wrong_accumulation,
    "Each call of gradients overwrites replica.grads: add them up in an array of your own.",
    "One allreduce a step, after the last micro-batch; a rank without images takes part, too.",
)
def accumulate(comm, replica, chosen, rate, most):
    """The step of the large batch, with the memory of a small one, and one allreduce."""
    first, last = (len(chosen) * rank // comm.size for rank in (comm.rank, comm.rank + 1))
    mine = np.zeros_like(replica.grads.flat)
    for start in range(first, last, most):
        replica.gradients(chosen[start : min(start + most, last)])
        mine += replica.grads.flat
    total = np.empty_like(mine)
    comm.Allreduce(mine, total)
    replica.params.flat -= rate / len(chosen) * total


CAUSES = "another start", "another order", "no allreduce", "the same share"


def symptoms(sick: Callable) -> None:
    """Print what sick(comm, cause, used), an epoch of 1,000 images, shows on four virtual ranks."""
    print("   ranks differ by: first   after one step   after the epoch    images used")
    for letter, cause in zip("ABCD", drift.model(), strict=True):
        seen = zip(*World(4).run(sick, cause, used := set()), strict=True)
        first, one, *_, last = (np.ptp(each, 0).max() for each in seen)
        print(f"{letter}{first:22.1e}{one:16.1e}{last:18.1e}{len(used):15}")


@kinds.labels(
    CAUSES,
    ["what would make the ranks equal at first, too?", "which images does nobody take?",
     "do all add up the same gradients?", "how many images has each rank an epoch?"],
    "Equal steps from different starts keep their distance.",
    "Where all ranks add up the same sums, they agree, whatever these are sums over.",
)  # fmt: skip
def drift():
    """Equal sums keep ranks as far apart as they were; without them, ranks part. Where ranks agree,
    only the images tell: of each rank's own order a quarter is used, so some images are missed."""
    return ["no allreduce", "another order", "another start", "the same share"]


def end_of(buckets: Sequence[int], seconds, sizes, alpha: float, beta: float) -> float:
    """When the last of `buckets`, numbers of layers, has been added up; one is sent at a time."""
    free, first = 0.0, 0
    for last in np.cumsum(buckets):
        free = max(free, sum(seconds[:last])) + alpha + beta * sum(sizes[first:last])
        first = last
    return free


def slow_buckets(choose: Callable) -> str:
    """What is wrong with a choice of buckets, if it is not the fastest."""
    draw = kinds.generator()
    for n in (1, 2, 5, 9, 16, 24) * 4:
        seconds, sizes = draw.exponential(1, n), draw.lognormal(0, 1.5, n)
        alpha, beta = draw.uniform(0.2, 3), draw.uniform(0.1, 1)
        buckets = [int(k) for k in choose(seconds.copy(), sizes.copy(), alpha, beta)]
        if sum(buckets) != n or min(buckets) < 1:
            return f"{n} layers: expected buckets of these, got {buckets}"
        best = end_of(challenge.model()(seconds, sizes, alpha, beta), seconds, sizes, alpha, beta)
        if (end := end_of(buckets, seconds, sizes, alpha, beta)) > 1.0001 * best:
            return f"{n} layers: ends after {end:.3f}, the best buckets after {best:.3f}"
    return ""


@kinds.tested(
    slow_buckets,
    "What is the earliest end for the first j layers, if you know it for all fewer?",
    "Try each size of the last bucket: it begins when it is whole and the one before has ended.",
)
def challenge(seconds, sizes, alpha, beta):
    """Dynamic programming: an earlier end of the first i layers never makes the rest later."""
    best = [(0.0, [])]
    for j in range(1, len(sizes) + 1):
        ready = sum(seconds[:j])
        ends = [
            (max(end, ready) + alpha + beta * sum(sizes[i:j]), [*buckets, j - i])
            for i, (end, buckets) in enumerate(best)
        ]
        best.append(min(ends))
    return best[-1][1]
