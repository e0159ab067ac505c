"""Lesson 20, ranks: programs on them, pictures, and the exercises."""

import contextlib
import functools
import linecache
from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from joblib import wrap_non_picklable_objects
from matplotlib.ticker import LogLocator

from cnnlab import data, measure
from cnnlab.check import collective, kinds
from cnnlab.plots.stepper import Stepper, frame, stepper
from cnnlab.plots.style import COLORS, GREY, HUES, INK, figure
from cnnlab.ranks import world
from cnnlab.ranks.record import Record
from cnnlab.ranks.virtual import Link, World
from cnnlab.ranks.virtual.cluster import VirtualCluster
from cnnlab.ranks.virtual.faults import Deadlock

# --- programs on ranks, and times ---------------------------------------------------------------


def on_real_ranks(ranks, program: Callable, *arguments, timeout: float | None = None) -> list:
    """What `program(comm, *arguments)` returns on each of the ranks."""
    whole = wrap_non_picklable_objects(lambda comm: program(comm, *arguments))  # and what they use
    return ranks.run(lambda program: program(world()), whole, timeout=timeout)


def unit(ranks) -> str:
    """The unit of times on such ranks."""
    return "virtual µs" if isinstance(ranks, VirtualCluster) else "µs"


def caption(ranks) -> str | None:
    """The caption of a figure of such times; None stands for the machine."""
    return f"virtual ranks, {Link()}" if isinstance(ranks, VirtualCluster) else None


def an_image() -> tuple[float, float]:
    """Seconds of an image, forward and backward: on one core here, and in the report."""
    digits = data.load("auto", n_train=2048, n_test=100)
    contestants = measure.contestants(["vector"], digits, 64, 1, None)
    report = data.report()
    theirs = report["sequential"]["epoch_seconds"] / report["images_per_epoch"]
    return measure.epochs(contestants, 64, repeats=5)["vector"].median / measure.EPOCH, theirs


# --- pictures -----------------------------------------------------------------------------------


@figure
def curves(panels: Mapping[str, Mapping[str, tuple]], marks: Mapping[str, float], **axes):
    """Draw panels of curves on logarithmic axes: by vertical label, then by name (x, y, style).

    `marks` are vertical lines by name; `axes` go to `set`.
    """
    _, both = plt.subplots(1, len(panels), figsize=(9, 3.8))
    for ax, (label, series) in zip(both, panels.items(), strict=True):
        for (name, (x, y, look)), color in zip(series.items(), np.roll(HUES, -2), strict=False):
            ax.plot(x, y, look, color=color, label=name, markersize=4, lw=1.2)
        for name, at in marks.items():
            ax.axvline(at, color=GREY, ls=":", lw=1.2, label=name)
        ax.set(xscale="log", yscale="log", ylabel=label, **axes)
        ax.minorticks_off()
        low, high = ax.get_ylim()
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
        ax.yaxis.set_major_formatter("{x:g}")
    both[0].legend(frameon=False, fontsize=8)
    return both


@figure
def stuck(program: Callable, sizes: Sequence[int]):
    """Draw who waits for whom, and in which line, where a program ends in a deadlock."""
    _, axes = plt.subplots(1, len(sizes), figsize=(4.4 * len(sizes), 2.6))
    for ax, size in zip(axes, sizes, strict=True):
        ranks, lines = World(size), set()
        with contextlib.suppress(Deadlock):
            ranks.run(program)
        angles = np.pi - 2 * np.pi * np.arange(size) / size
        spots = np.stack([np.cos(angles), np.sin(angles)], 1)
        look = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=-0.25", "color": INK}
        for rank, (request, where) in ranks.waiting.items():
            ends = spots[request.peer], spots[rank]
            ax.annotate("", *ends, arrowprops=look | {"shrinkA": 9, "shrinkB": 9})
            lines.add(linecache.getline(*where).partition("#")[0].strip())
        for rank, spot in enumerate(spots):
            ax.text(*(1.35 * spot), f"rank {rank}", ha="center", va="center", fontsize=9)
        ax.plot(*spots.T, "o", color=HUES[1], markersize=9)
        text = f"{len(ranks.waiting)} of {size} ranks wait in\n{'; '.join(lines)}"
        ax.set_title(text, fontsize=8)
        ax.set(xlim=(-2.6, 2.6), ylim=(-1.5, 1.5))
        ax.axis("off")
    return axes


def steps(records: Mapping[str, Record]) -> Stepper:
    """A stepper through broadcasts side by side: a frame whenever a message arrives in one."""
    times = sorted({round(m.end, 12) for record in records.values() for m in record.messages})
    frames, captions = [], []
    for now in times:
        texts = []
        axes = frame((4.2, 2.3), 1, len(records), sharey=True)
        for ax, (name, record) in zip(axes, records.items(), strict=True):
            for e in record.events:
                if e.kind == "send" and e.begin < now:
                    end = min(e.end, now) - e.begin
                    ax.barh(e.rank, 1e6 * end, 0.5, 1e6 * e.begin, color=COLORS["vector"])
            have = {0: 0.0} | {m.to: m.end for m in record.messages if m.end <= now + 1e-12}
            for m in record.messages:
                if m.begin < now:
                    part = min(1, (now - m.begin) / (m.end - m.begin))
                    end = 1e6 * min(m.end, now), m.source + part * (m.to - m.source)
                    look = {"arrowstyle": "->", "color": INK if m.to in have else GREY, "lw": 0.7}
                    look |= {"shrinkA": 0, "shrinkB": 0}
                    ax.annotate("", end, (1e6 * m.begin, m.source), arrowprops=look)
            ax.plot(1e6 * np.array([*have.values()]), [*have], "o", color=COLORS["threads"])
            ax.set(title=f"{name}: {len(have)} of {record.size}", xlabel="virtual µs")
            ax.set(xlim=(-0.4, 1.05e6 * times[-1]))
            ax.set(ylim=(record.size - 0.5, -0.5), yticks=range(record.size))
            ax.grid(visible=False)
            texts.append(f"{name}: {len(have)} ranks have it")
        axes[0].set_ylabel("rank")
        frames.append(axes[0].figure)
        captions.append(f"{1e6 * now:.1f} µs. {'; '.join(texts)}.")
    return stepper(frames, title="A broadcast, flat and along a tree", captions=captions)


# --- exercises ----------------------------------------------------------------------------------


def not_by_a_tree(program: Callable, scatters: bool) -> str:
    """What is wrong with a tree that scatters, or else adds up, on 1 to 9 virtual ranks."""
    for size in range(1, 10):
        rows, ranks = kinds.generator().random((size, 3)), World(size)

        def run(comm, rows=rows) -> np.ndarray:
            part = np.zeros(3) if scatters else rows[comm.rank].copy()
            whole = [rows.copy() if comm.rank == 0 else None] * scatters
            messages = collective.Limited(comm, collective.COLLECTIVE, collective.CALLS)
            program(messages, *whole, part)
            return part

        expected = rows if scatters else [rows.sum(0)]
        for rank, (part, row) in enumerate(zip(ranks.run(run), expected, strict=False)):
            if not np.allclose(part, row):
                return f"on {size} ranks: rank {rank} has {part.round(3)}, not {row.round(3)}"
        counts, most = ranks.record.by_pair()[0], (size - 1).bit_length()
        if (n := counts[0].sum() + counts[:, 0].sum()) > most:
            return f"on {size} ranks: rank 0 has {n} messages, more than {most}"
    return ""


@kinds.tested(
    functools.partial(not_by_a_tree, scatters=False),
    "Begin plainly: rank 0 receives from all others, in turn, into an array of its own.",
    "Turn the tree round: the rank that received last there sends first here, and adding "
    "takes the place of copying. Mind numbers of ranks that are no power of two.",
)
def reduce(comm, array):
    """A binomial tree again, with other edges: 3 sends to 2 here, where it heard from 1."""
    other, distance = np.empty_like(array), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.Send(array, comm.rank - distance)
            return
        if comm.rank + distance < comm.size:
            comm.Recv(other, comm.rank + distance)
            array += other
        distance *= 2


@kinds.tested(
    functools.partial(not_by_a_tree, scatters=True),
    "Rank 0 sends the second half of the rows to the rank in the middle. Who has what now?",
    "Both halves go on in the same way: rows first to last are on rank first. Stop at one row.",
)
def scatter(comm, whole, part):
    """Rank 0 still sends P − 1 rows, but pays *o* only for ⌈log₂ P⌉ messages."""
    rows, first, last = whole, 0, comm.size
    while last - first > 1:
        middle = (first + last + 1) // 2
        if comm.rank == first:
            comm.Send(rows[middle - first : last - first], middle)
        elif comm.rank == middle:
            rows = np.empty((last - middle, part.size), part.dtype)
            comm.Recv(rows, first)
        first, last = (first, middle) if comm.rank < middle else (middle, last)
    part[...] = rows[0]


@kinds.formula(
    lambda rng: {"cost": float(rng.uniform(0.1, 5)), "latency": float(rng.uniform(1, 50))},
    "Both take the same time on two ranks. On four?",
    "Double the number of ranks until log₂ P (c + L) is less than (P − 1) c + L.",
)
def from_ranks(cost, latency):
    """The longer the latency, counted in sends, the more ranks it takes until the tree wins."""
    rounds = 2
    while (2**rounds - 1) * cost + latency <= rounds * (cost + latency):
        rounds += 1
    return 2**rounds


def not_shifted(program: Callable) -> str:
    """What is wrong with a shift around a ring of virtual ranks, on which no send is eager."""
    others, text = "(?!(rank|size|Send|Recv)$)", "expected Send or Recv, got another call"
    for size in range(2, 8):

        def run(comm) -> list[float]:
            array = np.full(5, float(comm.rank))
            program(collective.Limited(comm, others, text), array)
            return array.tolist()

        for rank, array in enumerate(World(size, Link(eager=0)).run(run)):
            if array != 5 * [(rank - 1) % size]:
                return f"on {size} ranks: rank {rank} has {array[0]:g}, not {(rank - 1) % size}"
    return ""


@kinds.tested(
    not_shifted,
    "Who can receive while all ranks send?",
    "Let every other rank receive first.",
)
def shift(comm, array):
    """Of an odd number of ranks, the last and the first both send first. But rank 1 receives from
    rank 0, which is then free to receive from the last: there is no cycle."""
    received = np.empty_like(array)
    if comm.rank % 2:
        comm.Recv(received, (comm.rank - 1) % comm.size)
    comm.Send(array, (comm.rank + 1) % comm.size)
    if comm.rank % 2 == 0:
        comm.Recv(received, (comm.rank - 1) % comm.size)
    array[...] = received
