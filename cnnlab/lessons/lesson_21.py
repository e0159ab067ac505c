"""Lesson 21: a step whose layers ranks share, timed in parts; its drawings and its exercises."""

import functools
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from joblib import wrap_non_picklable_objects
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import composed
from cnnlab.measure.timing import Ratio, Timing, speedup, time_unit
from cnnlab.network import Network
from cnnlab.plots import charts
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, INK, figure, label_ends, style
from cnnlab.ranks import measure, world
from cnnlab.ranks.cluster import cluster
from cnnlab.ranks.virtual import World
from cnnlab.ranks.virtual.cluster import VirtualCluster
from cnnlab.runtime.failures import few

LINK = "2us,10GB/s"
PARTS = {"Gatherv": "Gather", "Bcast": "Bcast", "Allgatherv": "Allgather"}
FUSED, ALONE = "one core, fused", "one core, operations apart"


def batch(n_images: int) -> tuple:
    """Parameters, images (N, 1, 28, 28) of noise and labels (N), the same on every rank."""
    net, rng = Network(), np.random.default_rng(0)
    x = rng.random((n_images, *net.image_shape), np.float32)
    return net.parameters(0), x, rng.integers(0, net.classes, n_images)


# --- the time of a step, in parts -----------------------------------------------------------------


class Step(NamedTuple):
    """The time of a step, and the parts of the sample in the middle; of virtual ranks, virtual."""

    timing: Timing
    parts: Mapping[str, float]
    virtual: bool


def timed(spent: Counter, part: str, function: Callable) -> Callable:
    """The function, whose seconds are added to a part."""

    def call(*arguments):
        begin = time.perf_counter()
        result = function(*arguments)
        spent[part] += time.perf_counter() - begin
        return result

    return call


class Watched:
    """A communicator, or kernels: seconds in its functions are added up by part, see PARTS."""

    def __init__(self, watched, spent: Counter):
        self.watched, self.spent = watched, spent

    def __getattr__(self, name: str):
        value = getattr(self.watched, name)
        if callable(value):
            value = timed(self.spent, PARTS.get(name, "kernels"), value)
        setattr(self, name, value)  # found there from now on
        return value


def on_ranks(programs: Mapping, kernels: str, n_images: int, repeats: int) -> dict[str, list]:
    """Runs on every rank: of each program, samples of the seconds of a step and of its parts.

    A step lasts from a barrier until the slowest rank is done; parts are means over the ranks.
    """
    from mpi4py import MPI

    comm, spent, given = world(), Counter(), batch(n_images)
    grads, exact = (given[0].network.zeros() for _ in range(2))
    fused = KERNELS["vector"].module.loss_and_gradients
    fused(*given, exact)
    here = (lambda call: call) if comm.rank == 0 else lambda call: lambda *step: exact.flat
    watched = Watched(KERNELS[kernels].module, spent)
    steps = {ALONE: here(functools.partial(composed, KERNELS[kernels]))}
    if kernels == "vector":
        steps[FUSED] = here(fused)
    for name, make in programs.items():
        program = make(Watched(comm, spent), watched)
        for part in ("flatten", "build"):
            setattr(program, part, timed(spent, "copies", getattr(program, part)))
        steps[name] = program.step
    samples: dict[str, list] = {name: [] for name in steps}
    for k in range(1 + few(repeats)):  # the first to warm up
        for name, step in steps.items():
            spent.clear()
            comm.Barrier()
            begin = time.perf_counter()
            step(*given, grads)
            mine = time.perf_counter() - begin
            whole, parts = comm.allreduce(mine, MPI.MAX), comm.allgather(dict(spent))
            mean = {p: sum(each[p] for each in parts) / comm.size for p in parts[0]}
            samples[name] += [(whole, mean)] if k else []
    return samples


def measured(
    ranks, programs: Mapping, kernels: str = "vector", n_images: int = 64, repeats: int = 21
) -> dict[str, Step]:
    """Time programs, in turn, on ranks that run, and the step of one core in one go and not.

    A program makes, of a communicator and kernels, an object with `step`, `flatten` and `build`.
    """
    work = functools.partial(on_ranks, programs, kernels, n_images, repeats)
    samples = ranks.run(wrap_non_picklable_objects(work))[0]
    virtual, result = isinstance(ranks, VirtualCluster), {}
    for name, group in samples.items():
        whole, parts = sorted(group, key=lambda one: one[0])[len(group) // 2]
        parts = parts or {"kernels": whole}
        rest = {"Python, waiting": max(0.0, whole - sum(parts.values()))}
        timing = Timing(name, tuple(seconds for seconds, _ in group))
        result[name] = Step(timing, parts | (rest if len(parts) > 1 else {}), virtual)
    return result


def times(base: Step, other: Step) -> Ratio:
    """How many times as fast the other step is."""
    return speedup(base.timing, other.timing)


def changes(before: Step, after: Step) -> str:
    """How the parts of a step change, in words."""
    names = dict.fromkeys([*before.parts, *after.parts])
    pairs = ((name, before.parts.get(name, 0.0), after.parts.get(name, 0.0)) for name in names)
    return ", ".join(f"{name} {1e6 * a:,.0f} → {1e6 * b:,.0f} µs" for name, a, b in pairs)


def prices(kernels, n_images: int = 64, repeats: int = 11) -> dict[str, float]:
    """Seconds of one core for an element of each operation's result, medians."""
    given, each = batch(n_images), {}

    class Meter:
        dtype = np.dtype(np.float32)

        def kernel(self, name):
            def call(*arguments):
                begin = time.perf_counter()
                result = getattr(kernels, name)(*arguments)
                n = [a for a in arguments if isinstance(a, np.ndarray)][-1].size
                each.setdefault(name, []).append((time.perf_counter() - begin) / n)
                return result

            return call

    for _ in range(1 + few(repeats)):
        composed(Meter(), *given, given[0].network.zeros())
    return {name: float(np.median(values)) for name, values in each.items()}


class Priced:
    """In place of kernels: computes nothing, and lets a virtual rank take its time for it."""

    def __init__(self, comm, seconds: Mapping[str, float]):
        self.comm, self.seconds = comm, seconds

    def __getattr__(self, name: str):
        def call(*arguments):
            n = [a for a in arguments if isinstance(a, np.ndarray)][-1].size
            self.comm.compute(self.seconds[name] * n)
            return 0.0

        return call


def virtually(make: Callable, size: int, seconds: Mapping[str, float], n_images: int = 64) -> float:
    """The virtual seconds of a step on so many ranks with links of LINK; copies take none."""
    given, ranks = batch(n_images), World(size, LINK)
    grads = given[0].network.zeros()
    ranks.run(lambda comm: make(comm, Priced(comm, seconds)).step(*given, grads))
    return ranks.seconds


# --- drawings -------------------------------------------------------------------------------------


def bars(steps: Mapping[str, Step], bounds: Mapping[str, float], title: str) -> Axes:
    """Draw the parts of steps as stacked bars, and bounds in seconds."""
    parts = {name: step.parts for name, step in steps.items()}
    unit = time_unit(max(sum(each.values()) for each in parts.values()))[0]
    clock = "virtual seconds" if any(step.virtual for step in steps.values()) else None
    ax = charts.parts(parts, per="step", title=title, caption=clock)
    for k, (name, seconds) in enumerate(bounds.items()):
        ax.axvline(unit * seconds, color=INK, linestyle="--", linewidth=1.2)
        place = {"xytext": (3, 2 + 9 * k), "textcoords": "offset points", "fontsize": 8}
        ax.annotate(name, (unit * seconds, len(steps) - 0.55), color=INK, **place)
    return ax


@figure
def by_ranks(sizes: Sequence[int], curves: Mapping[str, Sequence[float]], bound: Sequence) -> Axes:
    """Draw how many times as fast steps are on so many virtual ranks, and an upper bound."""
    _, ax = plt.subplots(figsize=(7.5, 3.6))
    ax.plot(sizes, bound, "--", color=GREY, drawstyle="steps-post")
    ends = [(sizes[-1], bound[-1], "bound: six maps", GREY)]
    for (name, times), color in zip(curves.items(), (COLORS["device"], COLORS["vector"]), strict=True):
        ax.plot(sizes, times, "o-", color=color, markersize=4)
        ends.append((sizes[-1], times[-1], name, color))
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set(xlabel="virtual ranks", ylabel="times as fast as one rank", ylim=(0, None))
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, ends)
    return ax


def who_reads(
    results: Sequence[str], maps: Mapping[str, int], numbers: Mapping[str, int], read: Collection
) -> Stepper:
    """Step through the results of two ranks: `maps` of each, `numbers` gathered an image, who reads.

    Blue: computed by the rank; grey: received; framed: received and read later.
    """
    frames, captions, gathered, used = [], [], 0, 0
    for k, now in enumerate(results):
        n = numbers.get(now, 0)
        gathered, used = gathered + n, used + n * (now in read)
        verdict = "which are read" if now in read else "which nobody reads"
        captions.append(
            f"{now}: each rank computes {maps[now] // 2} of {maps[now]} blocks and receives the "
            f"others, {verdict}. So far {gathered:,} numbers an image gathered, {used:,} to be read."
        )
        with style():
            frames.append(Figure((4.4, 3.4), layout="none"))
            ax = frames[-1].add_axes((0.1, 0.01, 0.89, 0.92))
            ax.axis("off")
            for row, name in enumerate(results[: k + 1]):
                ax.text(-0.6, row, name, ha="right", va="center", fontsize=8)
                for rank, cell in np.ndindex(2, maps[name]):
                    own, kept = (cell >= maps[name] // 2) == bool(rank), name in read
                    look = {"fc": COLORS["vector"] if own else COLORS["loops"], "ec": "white"}
                    if not own:
                        look |= {"alpha": 1 if kept else 0.35, "ec": INK if kept else "white"}
                    at = 11.5 * rank + cell, row - 0.4
                    ax.add_patch(plt.Rectangle(at, 1, 0.8, **look, lw=1.5))
            ax.set(xlim=(0, 22), ylim=(len(results) - 0.4, -0.6))
            for rank in range(2):
                ax.text(11.5 * rank, -0.7, f"rank {rank}", fontsize=9)
    return stepper(frames, title="What two ranks compute and receive", captions=captions)


# --- the exercises --------------------------------------------------------------------------------


def dense_inputs(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features (4, 21), weights (7, 21) and biases (7): sizes that few numbers of ranks divide."""
    rng = np.random.default_rng(size)
    return tuple(rng.uniform(0.5, 1, shape).astype(np.float32) for shape in ((4, 21), (7, 21), (7,)))


def tried(program: Callable, columns: bool) -> str:
    """What is wrong with a fully connected layer on 1 to 5 virtual ranks, in words."""
    for size in range(1, 6):
        y, w, b = dense_inputs(size)

        def layer(comm, y=y, w=w, b=b):
            first, last = 21 * comm.rank // comm.size, 21 * (comm.rank + 1) // comm.size
            cut = (slice(None), slice(None) if columns else slice(first, last))
            given = (np.ascontiguousarray(array[cut]) for array in (y, w))
            return program(comm, *given, b.copy())

        ranks = World(size)
        for rank, z in enumerate(ranks.run(layer)):
            on = f"rank {rank} of {size}"
            if np.shape(z) != (4, 7):
                return f"{on}: expected (4, 7) outputs, got {np.shape(z)}"
            if not np.allclose(z, y @ w.T + b, rtol=1e-4):
                n, o = np.argwhere(~np.isclose(z, y @ w.T + b, rtol=1e-4))[0]
                return f"{on}: output {o} of image {n}: expected {(y @ w.T + b)[n, o]:.5g}, got {z[n, o]:.5g}"
        sent = sum(message.n_bytes for message in ranks.record.messages) // 4
        if not columns and sent > 7 * 4 * 2 * size * (size > 1):
            return f"{size} ranks sent {sent} numbers, more than two of each output a rank"
    return ""


@kinds.tested(
    functools.partial(tried, columns=True),
    "Three mistakes: which outputs are left over if 7 is no multiple of the ranks? Who has the "
    "result of a Gather? In which order do gathered blocks lie?",
    "Allgatherv takes (whole, counts). The blocks come one after the other, each of all images: "
    "copy each to its columns.",
)
def repaired(comm, y, w, b):
    """No output is left over, every rank has the result, and each block lies in its columns."""
    ends = [len(w) * r // comm.size for r in range(comm.size + 1)]
    mine = slice(ends[comm.rank], ends[comm.rank + 1])
    whole = np.empty(len(y) * len(w), np.float32)
    counts = [len(y) * n for n in np.diff(ends)]
    comm.Allgatherv(np.ascontiguousarray(y @ w[mine].T + b[mine]), (whole, counts))
    blocks = np.split(whole, np.cumsum(counts)[:-1])
    return np.hstack([block.reshape(len(y), -1) for block in blocks])


@kinds.tested(
    functools.partial(tried, columns=False),
    "A sum over all features is the sum, over the ranks, of sums over their own.",
    "An Allreduce adds arrays of (N, O). How often is the bias in the result?",
)
def row_parallel(comm, y, w, b):
    """Partial sums travel, ten an image, instead of 216 features; the bias is added once."""
    z = np.empty((len(y), len(w)), np.float32)
    comm.Allreduce(y @ w.T, z)
    return z + b


WHY = ["imbalance", "latency", "bandwidth", "replication"]


@kinds.labels(
    WHY,
    [
        "would faster messages help it?",
        "what does a message of one image have in common with one of eight?",
        "what do links twice as fast not change?",
        "messages are free, and each rank has one map: what is left?",
    ],
    "Ask of each which change would make it faster: fewer messages, shorter ones, other blocks, "
    "or less work that every rank does.",
)
def held_back():
    """Blocks of two and one; a price a message; a price a byte; work that all ranks do."""
    return WHY
