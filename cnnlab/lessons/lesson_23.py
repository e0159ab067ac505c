"""Lesson 23: its drawings, its stepper and its exercises.

Schedules are functions of `(rank, size, n)` that yield `Step`s, and are always arguments here: what
the lesson defines is what is drawn and judged.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from joblib import wrap_non_picklable_objects
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from cnnlab.check import kinds
from cnnlab.plots.stepper import Stepper, stepper
from cnnlab.plots.style import COLORS, GREY, LAYERS, colors, figure, label_ends, style
from cnnlab.ranks import world
from cnnlab.ranks.cluster import cluster
from cnnlab.ranks.collectives import perform
from cnnlab.ranks.schedules import NOBODY, Step, block, ring
from cnnlab.ranks.virtual import World
from cnnlab.ranks.virtual.cluster import VirtualCluster

NODES = "nodes of 4: 1us,100GB/s; 5us,10GB/s"


@figure
def curves(
    x: Sequence[int], series: Mapping[str, Sequence[float]], bound: Sequence[float], **axes
) -> Axes:
    """Draw seconds over x, and a lower bound; `axes` go to `set`."""
    _, ax = plt.subplots(figsize=(7.5, 3.8))
    lines, ends = {"lower bound": bound, **series}, []
    for (name, seconds), color in zip(lines.items(), [GREY, *colors(list(series))], strict=True):
        ax.plot(x, 1e3 * np.array(seconds), ".--" if color == GREY else ".-", color=color)
        ends.append((x[-1], 1e3 * seconds[-1], name, color))
    ax.set(ylabel="ms", xlim=(x[0], x[-1]), **axes)
    ax.figure.canvas.draw()  # limits are final now
    label_ends(ax, ends)
    return ax


@figure
def fastest(x: Sequence[float], y: Sequence[int], series: Mapping[str, np.ndarray]) -> Axes:
    """Draw a map of which schedule is the fastest; `series` has seconds (y, x)."""
    _, ax = plt.subplots(figsize=(7.5, 4.2))
    least, palette = np.argmin(list(series.values()), 0), colors(list(series))
    for k, name in enumerate(series):
        ax.plot([], [], "s", color=palette[k], label=name)
    ax.pcolormesh(x, y, least, cmap=ListedColormap(palette), vmin=0, vmax=len(palette) - 1)
    ax.set(xscale="log", xlabel="numbers", ylabel="ranks", yticks=2 ** np.arange(2, 7))
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), title="the fastest")
    return ax


def play(schedule: Callable, size: int) -> Iterator[tuple[list, dict, int]]:
    """Before the first round and after each: whose numbers are in the sum of each rank's blocks,
    the colours of blocks (rank, block) that came, and how many a rank has sent so far, at most."""
    sums, sent = [[{rank} for _ in range(size)] for rank in range(size)], [0] * size
    yield sums, {}, 0
    for steps in zip(*(schedule(rank, size, size) for rank in range(size)), strict=True):
        before, came = sums, {}
        sums = [list(row) for row in before]
        for rank, (to, a, b, source, c, d, add) in enumerate(steps):
            sent[rank] += (b - a) * (to != NOBODY)
            for i in range(c, d) if source != NOBODY else ():
                sums[rank][i] = before[source][i] | (before[rank][i] if add else set())
                came[rank, i] = COLORS["vector" if add else "device"]
        yield sums, came, max(sent)


def steps(schedules: Mapping[str, Callable], size: int = 4) -> Stepper:
    """A stepper through schedules side by side, a frame for each round, on as many blocks as ranks.

    A cell is a block of a rank, and lists the ranks whose numbers are in its sum.
    """
    frames, captions = [], []
    played = itertools.zip_longest(*(play(schedule, size) for schedule in schedules.values()))
    now: list = [None] * len(schedules)
    for k, states in enumerate(played):
        now = [new or (old[0], {}, old[2]) for new, old in zip(states, now, strict=True)]
        counts = []
        with style():
            frames.append(Figure((4.4, 2.4)))
            axes = frames[-1].subplots(1, len(now))
            for ax, name, (sums, came, sent) in zip(axes, schedules, now, strict=True):
                whole = np.array([[len(ranks) == size for ranks in row] for row in sums])
                done = f"{whole.sum()} sums complete"
                counts.append(f"{name}: {sent}/{size} m sent by each rank, {done}")
                ax.imshow(whole, ListedColormap(["white", LAYERS[2]]), vmin=0, vmax=1)
                for (rank, i), color in came.items():
                    frame = plt.Rectangle((i - 0.44, rank - 0.44), 0.88, 0.88, fill=False)
                    ax.add_patch(frame).set(edgecolor=color, linewidth=2)
                for rank, i in itertools.product(range(size), repeat=2):
                    text = "".join(map(str, sorted(sums[rank][i])))
                    ax.text(i, rank, text, ha="center", va="center", fontsize=9)
                ax.set(xlabel="block", ylabel="rank", xticks=range(size), yticks=range(size))
                ax.set_title(name)
                ax.grid(visible=False)
        captions.append((f"Round {k}" if k else "Before") + ". " + "; ".join(counts) + ".")
    return stepper(frames, title="Rank by block: whose numbers are in the sum", captions=captions)


def on_ranks(counts: Sequence[int], program: Callable) -> tuple[str, list]:
    """The unit of times, "µs" or "virtual µs", and what `program(comm)` returns on rank 0 of each.

    The ranks beyond a count are idle; `program` is a function of the lesson.
    """

    def part(program: Callable, n_ranks: int):
        mine = world().rank < n_ranks
        comm = world().Split(int(mine))
        return program(comm) if mine else None

    whole = wrap_non_picklable_objects(program)  # with all that it uses of the notebook
    with cluster(max(counts)) as ranks:
        unit = "virtual µs" if isinstance(ranks, VirtualCluster) else "µs"
        return unit, [ranks.run(part, whole, n_ranks)[0] for n_ranks in counts]


# --- exercises ----------------------------------------------------------------------------------


def outcome(program: Callable, size: int, n: int, network: str | None = None) -> tuple:
    """On virtual ranks, each with n fixed random float32: the numbers, the results, the world."""
    draw = np.random.default_rng([size, n])
    numbers = draw.uniform(0.5, 1, (size, n)).astype(np.float32)
    ranks = World(size, network)

    def run(comm) -> np.ndarray:
        array = numbers[comm.rank].copy()
        program(comm, array)
        return array

    return numbers, ranks.run(run), ranks


def by(schedule: Callable) -> Callable:
    """A schedule as a program of `comm` and an array."""
    return lambda comm, x: perform(comm, x, schedule(comm.rank, comm.size, x.size))


def not_the_sum(program: Callable, size: int, n: int) -> str:
    """What is wrong with an allreduce, if anything."""
    numbers, results, _ = outcome(program, size, n)
    for rank, result in enumerate(results):
        if not np.allclose(result, numbers.sum(0, np.float64), rtol=1e-5):
            return f"n = {n} on {size} ranks: rank {rank} has not the sum"
        if result.tobytes() != results[0].tobytes():
            return f"n = {n} on {size} ranks: rank {rank} has not the bits of rank 0"
    return ""


def wrong_blocks(schedule: Callable) -> str:
    """What is wrong with a reduce-scatter by pairwise exchange."""
    for size, n in itertools.product(range(1, 8), (0, 3, 7, 1000)):
        numbers, results, ranks = outcome(by(schedule), size, n)
        for rank, result in enumerate(results):
            part = slice(*block(rank, size, n))
            if not np.allclose(result[part], numbers[:, part].sum(0, np.float64), rtol=1e-5):
                return f"n = {n} on {size} ranks: block {rank} of rank {rank} is not the sum"
        sent = ranks.record.by_pair()[1] // 4
        for rank, to in itertools.permutations(range(size), 2):
            if sent[rank, to] != (least := len(range(*block(to, size, n)))):
                how = f"rank {rank} sends rank {to} {sent[rank, to]}, not the {least} of its block"
                return f"n = {n} on {size} ranks: {how}"
    return ""


@kinds.tested(
    wrong_blocks,
    "In round k, rank r sends to rank r + k. Which block does that rank own?",
    "Rank r receives from rank r − k, always its own block, and adds.",
)
def reduce_scatter(rank, size, n):
    """Each block goes straight to its owner, once. The ring adds on the way instead, and needs
    only its neighbours."""
    for k in range(1, size):
        to, source = (rank + k) % size, (rank - k) % size
        yield Step(to, *block(to, size, n), source, *block(rank, size, n), add=True)


@kinds.tested(
    lambda program: next(filter(None, (not_the_sum(program, p, 1000) for p in range(1, 7))), ""),
    "In which order does rank 0 add the others' numbers, and in which does rank 1?",
    "Keep what comes in row s of an array, where s is the rank it began on. Add at the end.",
)
def same_bits(comm, array):
    """Addition of floats is not associative: all ranks must add in the same order."""
    import numpy as np

    everything = np.empty((comm.size, array.size), array.dtype)
    everything[comm.rank] = array
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for k in range(comm.size - 1):
        sent, came = (comm.rank - k) % comm.size, (comm.rank - k - 1) % comm.size
        comm.Sendrecv(everything[sent], right, 0, everything[came], left, 0)
    array[:] = everything.sum(axis=0)


@kinds.formula(
    lambda rng: {
        "n_ranks": int(2 ** rng.integers(2, 12)),
        "alpha": float(rng.uniform(1e-6, 1e-5)),
        "beta": float(rng.uniform(1e-10, 1e-9)),
    },
    "Write both times from the table, and set them equal.",
    "Rabenseifner's has α log₂ P more for its rounds, and (log₂ P − 2 (P − 1)/P) β less a number.",
    rtol=0.02,
)
def numbers(n_ranks, alpha, beta):
    """log₂ P more rounds on one side, less traffic for each number on the other."""
    from math import log2

    rounds = log2(n_ranks)
    return rounds * alpha / ((rounds - 2 * (n_ranks - 1) / n_ranks) * beta)


def slower_than_the_ring(schedule: Callable) -> str:
    """What is wrong with an allreduce for 16 ranks in nodes of 4; prints its time."""
    if wrong := not_the_sum(by(schedule), 16, 3) or not_the_sum(by(schedule), 16, 1000):
        return wrong
    rival, yours = (outcome(by(s), 16, 1_000_000, NODES)[2].seconds for s in (ring, schedule))
    print(f"the ring {1e3 * rival:.3f} ms, yours {1e3 * yours:.3f} ms, virtual")
    return "" if yours < rival else "right, but not faster than the ring"


@kinds.tested(
    slower_than_the_ring,
    "Inside a node first: after a reduce-scatter among its four ranks, what must leave it?",
    "Then rank r needs a quarter of the numbers from the ranks r ± 4. At last, allgather inside.",
)
def challenge(rank, size, n):
    """Reduce-scatter in the node, allreduce of a quarter between nodes, allgather in the node."""
    node, me = divmod(rank, 4)
    left, right, nodes = 4 * node + (me - 1) % 4, 4 * node + (me + 1) % 4, size // 4
    for k in range(3):
        sent, came = block((me - k) % 4, 4, n), block((me - k - 1) % 4, 4, n)
        yield Step(right, *sent, left, *came, add=True)
    first, last = block((me + 1) % 4, 4, n)
    for to, a, b, source, c, d, add in ring(node, nodes, last - first):
        yield Step(4 * to + me, first + a, first + b, 4 * source + me, first + c, first + d, add)
    for k in range(3):
        sent, came = block((me + 1 - k) % 4, 4, n), block((me - k) % 4, 4, n)
        yield Step(right, *sent, left, *came)
