"""Predict an allreduce from rounds: what one costs, both ways and at once, for any size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cnnlab.ranks import measure
from cnnlab.ranks.collectives import perform
from cnnlab.ranks.schedules import NOBODY, SCHEDULES, Step
from cnnlab.runtime.arguments import one_of

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
