"""Memory or time: which algorithm computes how many images of a batch, under a cap of workspace.

After Oyama, Ben-Nun, Hoefler and Matsuoka, "µ-cuDNN: Accelerating Deep Learning Frameworks with
Micro-Batching" (2018). Tables say what one call costs: `times[algorithm][size]` in seconds and
`workspaces[algorithm][size]` in bytes, for a micro-batch of so many images. Micro-batches run one
after the other and share their workspace, so that a batch needs the largest of theirs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cnnlab.runtime.arguments import at_least

Table = Mapping[str, Mapping[int, float]]  # algorithm → images in a micro-batch → cost


class Piece(NamedTuple):
    """A micro-batch: the algorithm that computes it, and its images."""

    algorithm: str
    n_images: int


class Plan(NamedTuple):
    """A batch in micro-batches, with its seconds and the bytes of its workspace."""

    pieces: tuple[Piece, ...]
    seconds: float
    workspace: float

    def then(self, piece: Piece, seconds: float, workspace: float) -> "Plan":
        """This plan, and one more micro-batch after it."""
        workspace = max(self.workspace, workspace)
        return Plan((*self.pieces, piece), self.seconds + seconds, workspace)

    def __str__(self) -> str:
        counts = {piece: self.pieces.count(piece) for piece in self.pieces}
        return " + ".join(f"{n} × {size} by {name}" for (name, size), n in counts.items())


def fastest(times: Table, workspaces: Table, n_images: int, cap: float = math.inf) -> Plan | None:
    """The plan that takes least time for a batch under a cap in bytes, by dynamic programming.

    The best plan for n images ends in one micro-batch, and what comes before it is the best plan
    for the rest. None where no micro-batches under the cap make up the batch.
    """
    at_least("n_images", n_images, 1)
    allowed = [
        (Piece(name, size), seconds, workspaces[name][size])
        for name, by_size in times.items()
        for size, seconds in by_size.items()
        if workspaces[name][size] <= cap
    ]
    best: list[Plan | None] = [Plan((), 0.0, 0)]
    for n in range(1, n_images + 1):
        plans = [
            rest.then(piece, *cost)
            for piece, *cost in allowed
            if piece.n_images <= n and (rest := best[n - piece.n_images])
        ]
        best.append(min(plans, key=lambda plan: plan[1:], default=None))
    return best[-1]


def pareto(plans: Sequence[Plan]) -> list[Plan]:
    """The plans that none beats: no other is as good in both seconds and workspace, and better in
    one. By growing workspace, so by falling time."""
    front: list[Plan] = []
    for plan in sorted(plans, key=lambda plan: (plan.workspace, plan.seconds)):
        if not front or plan.seconds < front[-1].seconds:
            front.append(plan)
    return front


def front(times: Table, workspaces: Table, n_images: int) -> list[Plan]:
    """Every plan for a batch that is worth having: the fastest under each cap, see `pareto`."""
    caps = {size for by_size in workspaces.values() for size in by_size.values()}
    return pareto(list(filter(None, (fastest(times, workspaces, n_images, cap) for cap in caps))))


def share_the_cap(fronts: Mapping[str, Sequence[Plan]], cap: float) -> dict[str, Plan]:
    """One plan for each layer, so that all workspaces together fit under the cap in least time.

    A binary unknown for each plan of each layer: one of each layer's is 1, and an integer programme
    finds which. Raises ValueError where even the smallest plans need more than the cap.
    """
    from scipy.optimize import LinearConstraint, milp  # here, because it is slow to import

    owners = [name for name, plans in fronts.items() for _ in plans]
    plans = [plan for of_layer in fronts.values() for plan in of_layer]
    sizes = np.array([plan.workspace for plan in plans], float)
    seconds = np.array([plan.seconds for plan in plans])
    one_each = np.array([[owner == name for owner in owners] for name in fronts], float)
    found = milp(
        1e4 * seconds / seconds.max(),  # scaled up, as differences below 1e-6 count for nothing
        integrality=np.ones(len(plans)),
        bounds=(0, 1),
        constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(sizes, ub=cap)],
        options={"mip_rel_gap": 0},  # go on to the least, not to one near it
    )
    if found.x is None:
        least = sum(min(plan.workspace for plan in of_layer) for of_layer in fronts.values())
        raise ValueError(f"cap: expected at least {least:,} bytes, got {cap:,}")
    chosen = np.flatnonzero(found.x > 0.5)
    return {owners[i]: plans[i] for i in chosen}
