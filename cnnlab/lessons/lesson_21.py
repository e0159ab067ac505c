"""Lesson 21: a step whose layers ranks share, timed in parts; its drawings and its exercises."""

import functools
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from statistics import median
from types import SimpleNamespace
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from joblib import wrap_non_picklable_objects
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import composed
from cnnlab.measure.timing import Ratio, Timing, in_words, speedup
from cnnlab.network import Network
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, INK, LAYERS, as_rows, figure, style
from cnnlab.ranks import measure, world
from cnnlab.ranks.schedules import block
from cnnlab.ranks.virtual import World
from cnnlab.ranks.virtual.cluster import VirtualCluster
from cnnlab.runtime.failures import few

CALLS = {"Gatherv": "Gather", "Bcast": "Bcast", "Allgatherv": "Allgather"}  # of MPI, by part
PARTS = "kernels", "copies", "Gather", "Bcast", "Allgather", "the rest"
FUSED, APART = "one core, fused", "one core, operations apart"


def batch(n_images: int) -> tuple:
    """Parameters, images (N, 1, 28, 28) of noise and labels (N), the same on every rank."""
    net, rng = Network(), np.random.default_rng(0)
    labels = rng.integers(0, net.classes, n_images)
    return net.parameters(0), rng.random((n_images, *net.image_shape), np.float32), labels


# --- the time of a step, in parts -----------------------------------------------------------------


class PartedStep(NamedTuple):
    """The time of a step, and the medians of its parts; of virtual ranks, virtual."""

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


class Timed:
    """A communicator, or kernels: the seconds in its functions are added up by part."""

    def __init__(self, inner, spent: Counter):
        self.inner, self.spent = inner, spent

    def __getattr__(self, name: str):
        value = getattr(self.inner, name)
        return timed(self.spent, CALLS.get(name, "kernels"), value) if callable(value) else value


def on_ranks(programs: Mapping, kernels: str, repeats: int) -> dict[str, list]:
    """Runs on every rank: of each program, samples of the seconds of a step and of its parts.

    A step lasts from a barrier until the slowest rank is done; parts are means over the ranks.
    Raises AssertionError where a rank's block of the gradients is wrong.
    """
    comm, spent, given = world(), Counter(), batch(64)
    grads, exact = (given[0].network.zeros() for _ in range(2))
    KERNELS["vector"].module.loss_and_gradients(*given, exact)
    own = [slice(*block(comm.rank, comm.size, len(array))) for array in exact]
    fused = KERNELS[kernels].fused("loss_and_gradients", given[0].network)
    steps = {FUSED: fused} if fused else {}
    steps[APART] = functools.partial(composed, KERNELS[kernels])
    if comm.rank:  # one core is rank 0's
        steps = dict.fromkeys(steps, lambda *arguments: np.copyto(grads.flat, exact.flat))
    for name, make in programs.items():
        program = make(*(Timed(each, spent) for each in (comm, KERNELS[kernels].module)))
        for part in ("flatten", "build"):
            setattr(program, part, timed(spent, "copies", getattr(program, part)))
        steps[name] = program.step
    samples: dict[str, list] = {name: [] for name in steps}
    for k in range(1 + few(repeats)):  # the first to warm up
        for name, step in steps.items():
            spent.clear()
            grads.flat[:] = np.nan
            seconds = measure.sample(comm, functools.partial(step, *given, grads), 1)
            parts = [*map(Counter, comm.allgather(dict(spent)))]
            mean = {part: sum(each[part] for each in parts) / comm.size for part in parts[0]}
            samples[name] += [(seconds, mean)] * (k > 0)
            pairs = zip(grads, exact, own, strict=True)
            if not k and not all(np.allclose(g[i], e[i], 1e-3, 1e-3) for g, e, i in pairs):
                raise AssertionError(f"{name}: wrong gradients on rank {comm.rank}, so not timed")
    return samples


def measured(ranks, programs: Mapping, kernels: str = "vector", repeats: int = 21) -> dict:
    """The timed step of each program, on 64 images, in turn with one core that takes it alone.

    A program makes, of a communicator and kernels, an object with `step`, `flatten` and `build`.
    """
    work = functools.partial(on_ranks, programs, kernels, repeats)
    samples, result = ranks.run(wrap_non_picklable_objects(work))[0], {}
    for name in (FUSED, APART, *programs):
        if group := samples.get(name):
            timing = Timing(name, tuple(seconds for seconds, _ in group))
            each = {part: median(spent.get(part, 0.0) for _, spent in group) for part in PARTS}
            last = "the rest" if any(each.values()) else "kernels"  # one core's are not timed apart
            each[last] = max(0.0, timing.median - sum(each.values()))
            parts = {part: seconds for part, seconds in each.items() if seconds}
            result[name] = PartedStep(timing, parts, isinstance(ranks, VirtualCluster))
    return result


def times(base: PartedStep, other: PartedStep) -> Ratio:
    """How many times as fast the other step is."""
    return speedup(base.timing, other.timing)


def prices(kernels, repeats: int = 101) -> dict[str, float]:
    """Seconds of one core, in warm memory, for an element of each operation's result: medians."""
    given, grads, each = batch(64), Network().zeros(), {}

    def kernel(name: str):
        def call(*arguments):
            for _ in range(2):  # the first maps the pages of new arrays
                begin = time.perf_counter()
                result = getattr(kernels, name)(*arguments)
            n = [a for a in arguments if isinstance(a, np.ndarray)][-1].size
            each.setdefault(name, []).append((time.perf_counter() - begin) / n)
            return result

        return call

    for _ in range(1 + few(repeats)):
        composed(SimpleNamespace(kernel=kernel, dtype=given[1].dtype), *given, grads)
    return {name: float(np.median(values)) for name, values in each.items()}


@figure
def bars(steps: Mapping[str, PartedStep], bounds: Mapping[str, float], where: str) -> Axes:
    """Draw the parts of steps as stacked bars, and bounds in seconds."""
    _, ax = plt.subplots(figsize=(7.5, 1.9 + 0.38 * len(steps)))
    left = np.zeros(len(steps))
    for part, color in zip(PARTS, LAYERS, strict=True):
        ms = 1e3 * np.array([step.parts.get(part, 0.0) for step in steps.values()])
        last = ax.barh(list(steps), ms, 0.66, left, color=color, label=part)
        left += ms
    ax.bar_label(last, [in_words(total / 1e3) for total in left], padding=6, fontsize=9)
    for line, (name, seconds) in zip(("--", ":"), bounds.items(), strict=True):
        ax.axvline(1e3 * seconds, color=INK, linestyle=line, linewidth=1.2, label=name)
    ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(-0.1, 1), frameon=False, fontsize=9)
    ax.set(xlim=(0, 1.15 * max(left)), xlabel=f"ms per step, {where}")
    return as_rows(ax, steps)


def who_reads(maps: Mapping[str, int], numbers: Mapping[str, int], read: Collection) -> Stepper:
    """Step through two ranks' results: computed (blue), received (pale), and read (framed)."""
    frames, captions, gathered, used = [], [], 0, 0
    for k, now in enumerate(maps):
        gathered, used = gathered + numbers[now], used + numbers[now] * (now in read)
        captions.append(
            f"{now}: a rank computes {maps[now] // 2} of {maps[now]} features, receives the rest. "
            f"So far {gathered:,} numbers an image are gathered, {used:,} of them read by others."
        )
        with style():
            frames.append(Figure((4.4, 3.4), layout="none"))
            ax = frames[-1].add_axes((0.1, 0.01, 0.89, 0.92), frame_on=False, xticks=(), yticks=())
            for row, name in enumerate([*maps][: k + 1]):
                ax.text(-0.6, row, name, ha="right", va="center", fontsize=8)
                for rank, cell in np.ndindex(2, maps[name]):
                    own, framed = (cell >= maps[name] // 2) == rank, name in read
                    look = {"fc": COLORS["vector"] if own else "#f0dfbd", "lw": 1.5}
                    look |= {"ec": INK, "zorder": 2} if framed and not own else {"ec": "white"}
                    ax.add_patch(plt.Rectangle((11.5 * rank + cell, row - 0.4), 1, 0.8, **look))
            ax.set(xlim=(0, 22), ylim=(len(maps) - 0.4, -0.6))
            for rank in range(2):
                ax.text(11.5 * rank, -0.7, f"rank {rank}", fontsize=9)
    title = "Blue: computed; pale: received; framed: received, and read"
    return stepper(frames, title=title, captions=captions)


# --- the exercises --------------------------------------------------------------------------------


def tried(program: Callable, columns: bool) -> str:
    """What is wrong with a fully connected layer on 1 to 5 virtual ranks, in words."""
    rng = np.random.default_rng(21)
    y, w, b = (rng.uniform(0.5, 1, n).astype(np.float32) for n in ((4, 21), (7, 21), 7))
    expected = y @ w.T + b
    for size in range(1, 6):

        def layer(comm, size=size):
            mine = slice(None) if columns else slice(*block(comm.rank, size, 21))
            return program(comm, *(np.ascontiguousarray(a[:, mine]) for a in (y, w)), b.copy())

        ranks = World(size)
        for rank, z in enumerate(ranks.run(layer)):
            on = f"rank {rank} of {size}"
            if np.shape(z) != expected.shape:
                return f"{on}: expected {expected.shape} outputs, got {np.shape(z)}"
            for n, o in np.argwhere(~np.isclose(z, expected, rtol=1e-4)):
                numbers = f"expected {expected[n, o]:.5g}, got {z[n, o]:.5g}"
                return f"{on}: output {o} of image {n}: {numbers}"
        sent = sum(message.n_bytes for message in ranks.record.messages) // 4
        if not columns and sent > 2 * size * expected.size:
            return f"{size} ranks sent {sent} numbers, more than two for each output and rank"
    return ""


@kinds.tested(
    functools.partial(tried, columns=True),
    "Who computes the last outputs, if 7 is no multiple of the ranks? Who has what is gathered?",
    "Allgatherv takes (whole, counts). Blocks come one after the other, each of all images: copy "
    "each to its columns.",
)
def repaired(comm, y, w, b):
    """No output is left over, every rank has the result, and each block lies in its columns."""
    ends = [len(w) * r // comm.size for r in range(comm.size + 1)]
    mine = slice(ends[comm.rank], ends[comm.rank + 1])
    whole, counts = np.empty(len(y) * len(w), np.float32), len(y) * np.diff(ends)
    comm.Allgatherv(np.ascontiguousarray(y @ w[mine].T + b[mine]), (whole, counts))
    blocks = np.split(whole, np.cumsum(counts)[:-1])
    return np.hstack([each.reshape(len(y), -1) for each in blocks])


@kinds.tested(
    functools.partial(tried, columns=False),
    "A sum over all features is the sum, over the ranks, of sums over their own.",
    "An Allreduce adds arrays of (N, O). How often is the bias in the result?",
)
def row_parallel(comm, y, w, b):
    """Ten sums an image are reduced, not 216 features gathered; the bias is added once, after."""
    z = np.empty((len(y), len(w)), np.float32)
    comm.Allreduce(y @ w.T, z)
    return z + b
