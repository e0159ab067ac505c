"""The cost of messages: fit latency and bandwidth, predict and simulate an allreduce."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from cnnlab.ranks import measure
from cnnlab.ranks.collectives import perform
from cnnlab.ranks.schedules import NOBODY, SCHEDULES, Step
from cnnlab.runtime.arguments import at_least, one_of


@dataclass(frozen=True)
class Model:
    """A message of s bytes takes L + s G seconds; an addition takes A seconds.

    `latency` is L in seconds, `gap` is G in seconds per byte, `add` is A in seconds per element.
    `size_of` is the bytes per element, γ in the formulas below: 4 for float32.
    """

    latency: float
    gap: float
    add: float = 0.0
    size_of: int = 4

    def __post_init__(self):
        for name in ("latency", "gap", "add"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name}: expected a finite number of at least 0, got {value!r}")

    def message(self, n: int) -> float:
        """The time of one message of n elements, in seconds."""
        return self.latency + self.gap * self.size_of * n

    def __str__(self) -> str:
        return (
            f"latency {1e6 * self.latency:.3g} µs, {1e-9 / self.gap if self.gap else math.inf:.3g} "
            f"GB/s, {1e9 * self.add:.2g} ns per addition"
        )


# The time of an allreduce of m elements on P ranks, in seconds.


def tree(model: Model, n_ranks: int, n: int) -> float:
    """2 L log2 P + 2 γ m G log2 P, and m additions per level."""
    levels = math.log2(n_ranks)
    return 2 * levels * model.message(n) + levels * n * model.add


def butterfly(model: Model, n_ranks: int, n: int) -> float:
    """L log2 P + γ m G log2 P, and m additions per round."""
    return math.log2(n_ranks) * (model.message(n) + n * model.add)


def ring(model: Model, n_ranks: int, n: int) -> float:
    """2 L (P − 1) + 2 γ m G (P − 1) / P, and m (P − 1) / P additions."""
    return (n_ranks - 1) * (2 * model.message(n / n_ranks) + n / n_ranks * model.add)


def rabenseifner(model: Model, n_ranks: int, n: int) -> float:
    """2 L log2 P + 2 γ m G (P − 1) / P, and m (P − 1) / P additions."""
    sent = n * (n_ranks - 1) / n_ranks  # in each half
    return 2 * model.latency * math.log2(n_ranks) + sent * (
        2 * model.gap * model.size_of + model.add
    )


def lower_bound(model: Model, n_ranks: int, n: int) -> float:
    """L log2 P + 2 γ m G (P − 1) / P: each term is the least that any schedule needs."""
    sent = n * (n_ranks - 1) / n_ranks
    return model.latency * math.log2(n_ranks) + 2 * model.gap * model.size_of * sent


PREDICTED: dict[str, Callable[[Model, int, int], float]] = {
    "tree": tree,
    "butterfly": butterfly,
    "ring": ring,
    "rabenseifner": rabenseifner,
}


def fit(
    sizes: Sequence[int], seconds: Sequence[float], add: float = 0.0, size_of: int = 4
) -> Model:
    """Fit L and G, at least 0, to the one-way times of messages of `sizes` elements, in seconds.

    Least squares of the relative error, so that each size counts the same. `add` is measured
    separately. Raises ValueError for fewer than two sizes, or times that are not positive.
    """
    if len(sizes) != len(seconds) or len(set(sizes)) < 2:
        raise ValueError(
            f"sizes: expected at least two different ones, and a time for each, got {len(sizes)} "
            f"sizes and {len(seconds)} times"
        )
    t = np.asarray(seconds, float)
    if not (np.isfinite(t) & (t > 0)).all():
        raise ValueError(f"seconds: expected positive numbers, got {list(seconds)}")
    columns = np.c_[np.ones(len(t)), size_of * np.asarray(sizes, float)]
    scale = columns.max(0)  # the two columns differ by powers of ten
    (latency, gap), _ = nnls(columns / scale / t[:, None], np.ones(len(t)))
    return Model(latency / scale[0], gap / scale[1], add, size_of)


def simulate(
    model: Model,
    schedule: str,
    n_ranks: int,
    n: int,
    start: Sequence[float] | None = None,
) -> np.ndarray:
    """The time (n_ranks,) at which each rank finishes an allreduce of n elements, in seconds.

    A message leaves when its sender reaches that round, and arrives L + s G later. A rank enters
    its next round once its own message is out (s G) and the one it waits for has arrived and been
    added. Rank i starts at `start[i]` (default 0). Raises ValueError for a wrong argument.
    """
    at_least("n_ranks", n_ranks, 1)
    at_least("n", n, 0)
    one_of("schedule", schedule, SCHEDULES)
    now = np.zeros(n_ranks) if start is None else np.array(start, float)
    if len(now) != n_ranks:
        raise ValueError(f"start: expected one time for each of {n_ranks} ranks, got {len(now)}")
    latency, gap, add = model.latency, model.gap * model.size_of, model.add  # per element
    programs = [SCHEDULES[schedule](rank, n_ranks, n) for rank in range(n_ranks)]
    for steps in zip(*programs, strict=True):
        numbers = np.fromiter(itertools.chain.from_iterable(steps), int, 7 * n_ranks)
        to, a, b, source, c, d, adds = numbers.reshape(n_ranks, 7).T
        sent = np.where(to != NOBODY, b - a, 0)
        received = np.where(source != NOBODY, d - c, 0)
        arrived = np.maximum(now, now[source]) + latency + received * (gap + add * adds)
        now = np.maximum(now + sent * gap, np.where(received, arrived, 0))
    return now


# --- predict an allreduce from rounds: what one costs, both ways and at once, for any size --------

KINDS = ("one way", "both ways", "one way, added", "both ways, added")


def rounds(comm, sizes: Sequence[int], repeats: int = 11) -> dict[str, list[list[float]]]:
    """Samples of the seconds of a round of n float32 for each of KINDS, at each of the sizes.

    Every rank calls this. Ranks are in pairs, and all pairs send at the same time: what they share
    is in the times. One way is a message and its answer, in two rounds.
    """
    peer = comm.rank ^ 1 if comm.rank ^ 1 < comm.size else NOBODY
    found: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for n in sizes:
        flat, calls = np.zeros(n, np.float32), {}
        for kind in KINDS:
            steps = pair_steps(comm.rank, peer, n, "both" in kind, "added" in kind)
            calls[kind] = lambda steps=steps, flat=flat: perform(comm, flat, steps)
        for kind, samples in measure.alternately(comm, calls, repeats).items():
            found[kind].append([seconds / 2 for seconds in samples])
    return found


def leading(comm, n: int = 1000, repeats: int = 11) -> dict[str, float]:
    """The median seconds in which Python generates a schedule's steps, by schedule."""
    calls = {
        name: lambda schedule=schedule: list(schedule(comm.rank, comm.size, n))
        for name, schedule in SCHEDULES.items()
    }
    timed = measure.alternately(comm, calls, repeats)
    return {name: float(np.median(samples)) for name, samples in timed.items()}


def pair_steps(rank: int, peer: int, n: int, both: bool, add: bool) -> list[Step]:
    """Two rounds of a rank and its peer: an exchange, twice; or a message, and one back."""
    if peer == NOBODY:
        return []
    if both:
        return 2 * [Step(peer, 0, n, peer, 0, n, add)]
    there, back = Step(to=peer, b=n), Step(source=peer, d=n, add=add)
    return [there, back] if rank < peer else [back, there]


@dataclass(frozen=True)
class RoundModel:
    """Seconds of a round by KINDS at some `sizes`, in float32; between them on a line of powers.

    `lead` are the seconds that a schedule's steps take to generate, none for what it does not name.
    """

    sizes: Sequence[int]
    seconds: Mapping[str, Sequence[float]]
    lead: Mapping[str, float] = field(default_factory=dict)

    def step(self, step: Step) -> float:
        """The seconds of one rank's part in a round; 0 where it has none."""
        sent = step.b - step.a if step.to != NOBODY else 0
        received = step.d - step.c if step.source != NOBODY else 0
        if not sent and not received:
            return 0.0
        kind = ("both ways" if sent and received else "one way") + ", added" * step.add
        at = np.log(np.maximum(max(sent, received), self.sizes[0]))
        return float(np.exp(np.interp(at, np.log(self.sizes), np.log(self.seconds[kind]))))

    def allreduce(self, schedule: str, n_ranks: int, n: int) -> float:
        """The predicted seconds of an allreduce of n float32: in each round the slowest decides.

        Raises ValueError for an unknown schedule.
        """
        one_of("schedule", schedule, SCHEDULES)
        programs = [SCHEDULES[schedule](rank, n_ranks, n) for rank in range(n_ranks)]
        rounds = (max(map(self.step, steps)) for steps in zip(*programs, strict=True))
        return self.lead.get(schedule, 0.0) + sum(rounds)
