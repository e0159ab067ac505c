"""Lesson 40, side by side: layouts of ranks and threads, drawings, and the exercises."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from cnnlab import data
from cnnlab.check import kinds
from cnnlab.distributed.data_parallel import DataParallel
from cnnlab.kernels import KERNELS
from cnnlab.measure.timing import Timing, in_words, same
from cnnlab.network import Network
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, INK, OTHERS, WRONG, as_rows, colors, figure, note
from cnnlab.ranks import measure
from cnnlab.ranks.cluster import cluster
from cnnlab.runtime import thread_pool
from cnnlab.training import Method, Replica, Sgd

# --- ranks × threads ------------------------------------------------------------------------------


def layouts(n_ranks: int, thread_counts: Sequence[int], batch: int, n_steps=32, repeats=15):
    """Time a step on one core, and on all ranks with some numbers of threads each, in turn.

    Returns the Timing of a step by layout, and for each rank the number of cores it may run on.
    """
    with cluster(n_ranks, n_threads=max(thread_counts)) as ranks:
        samples, places = zip(
            *ranks.run(steps, thread_counts, batch, n_steps, repeats), strict=True
        )
    of_steps = {name: [s / n_steps for s in row] for name, row in samples[0].items()}
    return {name: Timing(name, tuple(row)) for name, row in of_steps.items()}, places


def steps(thread_counts: Sequence[int], batch: int, n_steps: int, repeats: int):
    """On every rank: the seconds of some steps by layout, see `layouts`; the cores it may use.

    Raises AssertionError, and times nothing, where their parameters differ from those of one core.
    """
    from mpi4py import MPI

    comm, net = MPI.COMM_WORLD, Network()
    order = np.arange(n_steps * batch)
    images = np.random.default_rng(0).random((len(order), *net.image_shape), np.float32)

    def train(kernels, n_threads, method):
        params = net.parameters(0)
        replica = Replica(KERNELS[kernels], params, images, order % 10, batch, Sgd(0.1))

        def all_steps():
            with thread_pool.threads(n_threads):
                method.steps(replica, order)

        all_steps()
        return all_steps, replica.params.flat.copy()

    one_core, expected = train("vector", 1, Method())
    calls = {"one core": (lambda: None) if comm.rank else one_core}
    for n in thread_counts:
        name = f"{comm.size} ranks × {n}"
        calls[name], params = train("threads", n, DataParallel(comm))
        same(params, expected, name=name)
    return measure.alternately(comm, calls, repeats), thread_pool.usable_cores()


# --- pictures -------------------------------------------------------------------------------------


@figure
def serial_fractions(curves: Mapping[str, Sequence[tuple[int, float]]]) -> Axes:
    """Draw the Karp–Flatt metric over workers: a name's pairs of workers and fraction."""
    _, ax = plt.subplots(figsize=(7.5, 3.6))
    ax.axhspan(-1, 0, color=WRONG, alpha=0.12, lw=0)
    most = max(p for row in curves.values() for p, _ in row)
    note(ax, "no serial part does this", (most, 0), (0, -4), ha="right", va="top")
    for color, (name, row) in zip(colors(list(curves)), curves.items(), strict=True):
        ax.plot(*zip(*row, strict=True), "o-", color=color, label=name)
    values = [fraction for row in curves.values() for _, fraction in row]
    ax.set(xlabel="workers", ylabel="serial fraction")
    ax.set_ylim(min(-0.4, *values), 0.1 + max(1, *values))
    ax.set_xticks(sorted({p for row in curves.values() for p, _ in row}))
    ax.legend(frameon=False, fontsize=9)
    return ax


def adder(schedules: Mapping[str, Sequence[int]], latency: int) -> Stepper:
    """Step through an adder, a cycle each frame: in which cycle additions begin, by name."""
    last = max(begins[-1] for begins in schedules.values()) + latency

    def draw(ax: Axes, now: int) -> None:
        every = [begin for one in schedules.values() for begin in one]
        for y, begin in enumerate(every):
            done = min(now, begin + latency) - begin
            if done > 0:
                color = OTHERS[0] if done == latency else COLORS["vector"]
                ax.barh(y, done, 0.8, begin, color=color)
        ax.axvline(now, color=INK, lw=1)
        ax.set(xlim=(0, last + 1), ylim=(len(every) - 0.4, -0.6), xlabel="cycles")
        firsts = np.cumsum([0, *map(len, schedules.values())])[:-1]
        ax.set_yticks(firsts, list(schedules))
        for y in firsts[1:]:
            ax.axhline(y - 0.5, color=GREY, lw=0.8)

    frames, captions = [], []
    for now in range(0, last + 1, latency):
        ends = {
            name: sum(begin + latency <= now for begin in one) for name, one in schedules.items()
        }
        frames.append(lambda ax, now=now: draw(ax, now))
        done = ", ".join(f"{name} {n} of {len(schedules[name])}" for name, n in ends.items())
        captions.append(f"Additions done after {now} cycles (purple): {done}.")
    return stepper(frames, title="An adder, with one sum and with more", captions=captions)


@figure
def lower_bounds(claimed: Mapping[str, float], bounds: Mapping[str, Mapping[str, float]]) -> Axes:
    """Draw claimed seconds, a row each, and their lower bounds by name, on a logarithmic axis.

    A claim is a dot, orange where it is below a bound; a bound is a line with its name.
    """
    _, ax = plt.subplots(figsize=(8, 1.2 + 0.85 * len(claimed)))
    names = list(claimed)
    every = [*claimed.values(), *(t for row in bounds.values() for t in row.values())]
    ax.set(xscale="log", xlim=(min(every) / 3, 30 * max(every)), xlabel="seconds for an image")
    for y, name in enumerate(names):
        worst = max(bounds[name].values())
        ax.plot(claimed[name], name, "o", color=WRONG if claimed[name] < worst else OTHERS[0])
        said = f"claimed {in_words(claimed[name])}"
        note(ax, said, (claimed[name], y), (0, 12), ha="center", fontsize=8, color=INK)
        for k, (what, seconds) in enumerate(sorted(bounds[name].items(), key=lambda row: row[1])):
            ax.plot([seconds, seconds], [y - 0.12, y + 0.2], color=GREY, lw=1.4)
            text = f"{what} {in_words(seconds)}"
            note(ax, text, (seconds, y + 0.2), (0, -9 - 9 * (k % 2)), ha="center", fontsize=7)
    as_rows(ax, names).set_ylim(len(names) - 0.4, -0.6)
    return ax


# --- the exercises --------------------------------------------------------------------------------


@kinds.number(
    "Add up the three layers. What does the whole network take?",
    "97.700 + 5.127 + 2.129 − 102.317.",
    rtol=0.01,
)
def too_many():
    """Each layer was timed in its own network (report, section 6.3): three runs, and a fourth."""
    printed = data.report()["sequential"]
    return sum(printed["layer_seconds"].values()) - printed["epoch_seconds"]


@kinds.number(
    "Amdahl: 1 / (s + (1 − s) / p). Which s gives 1.52734 for p = 2?",
    "s = 2 / 1.52734 − 1. Now put p = 4.",
    rtol=5e-3,
)
def four_ranks():
    """The report measured 1.02. A serial part cannot do that; messages can, or too few cores."""
    serial = 2 / data.report()["mpi"]["speedup"][0] - 1
    return 1 / (serial + (1 - serial) / 4)


@kinds.number(
    "What is left of the sum if the convolution takes no time?",
    "All three layers by the two others.",
    rtol=5e-3,
)
def limit():
    """So begin with the convolution; but the network's 34 times need the other layers, too."""
    convolution, *rest = data.report()["sequential"]["layer_seconds"].values()
    return (convolution + sum(rest)) / sum(rest)


def try_verdicts(answer) -> str:
    """What is wrong with the words for speedups by workers; each table is tried in both orders."""
    rng, model = kinds.generator(), verdicts.model()
    for _ in range(200):
        workers = sorted(rng.choice(np.arange(2, 17), rng.integers(1, 6), replace=False).tolist())
        table = {p: float(p * rng.uniform(0.2, 1.1)) for p in workers}
        if rng.random() < 0.5:  # nearly a serial part alone, so that differences are small
            serial = rng.uniform(0, 0.5)
            table = {p: 1 / (serial + (1 - serial) / p + rng.uniform(0, 0.06)) for p in workers}
        for given in (table, dict(reversed(table.items()))):
            expected, got = model(dict(given)), answer(dict(given))
            if got != expected:
                return f"expected {expected}, got {got!r}, of {given}"
    return ""


@kinds.tested(
    try_verdicts,
    "Go through the workers in ascending order, and keep the serial fraction of the one before.",
    "The fraction is (1 / S − 1 / p) / (1 − 1 / p). One with a slow base has a fraction, too.",
)
def verdicts(speedups):
    """A negative fraction is kept as well: overhead after it is a rise from there."""
    words, before = {}, float("inf")
    for p in sorted(speedups):
        fraction = (1 / speedups[p] - 1 / p) / (1 - 1 / p)
        words[p] = "overhead" if fraction > before + 0.05 else "serial part"
        if speedups[p] > p:
            words[p] = "slow base"
        before = fraction
    return words


@kinds.number(
    "Two chains run beside each other. How long is each?",
    "1,568 times 4 cycles, at 1.58 cycles a nanosecond.",
    rtol=0.01,
)
def unrolled():
    """Two sums halve the chain. More gain nothing on a T4: a quarter of its SM has 16 lanes, so it
    begins a warp's 32 multiply-adds only every two cycles."""
    return 3136 / 2 * 4 / 1.58


@kinds.choice(
    ["A", "B", "C"],
    "Compute the serial fractions of A: do they rise quickly? And is B's base slow?",
    "A speedup may look fine while both of its times are impossible.",
)
def impossible():
    """A core that can do 36 GFLOP/s doesn't do 40, nor do eight 290; the ratio looks plausible."""
    return "C"
