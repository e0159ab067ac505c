"""How fast virtual ranks compute: each at its own speed, with jitter and stragglers from a seed."""

import math
from collections.abc import Mapping, Sequence

import numpy as np


class Pace:
    """Factors on the time of computing: `speed` has one for each rank, or those of some of them.

    With `jitter` s, each section takes exp(s x) times as long besides, with x from a standard
    normal distribution: its median stays, and a rank draws the same whatever the others do. Raises
    ValueError for factors that are not positive, or not one for each rank.
    """

    def __init__(self, n_ranks: int, speed=(), jitter: float = 0.0, seed: int = 0):
        if isinstance(speed, Mapping):
            if strangers := [rank for rank in speed if rank not in range(n_ranks)]:
                raise ValueError(f"speed: expected ranks below {n_ranks}, got {strangers[0]}")
            speed = [speed.get(rank, 1.0) for rank in range(n_ranks)]
        speed = list(speed) or [1.0] * n_ranks
        if len(speed) != n_ranks:
            raise ValueError(f"speed: expected a factor for each of {n_ranks}, got {len(speed)}")
        if not all(0 < factor < math.inf for factor in speed):
            raise ValueError(f"speed: expected positive numbers, got {min(speed)}")
        if not 0 <= jitter < math.inf:
            raise ValueError(f"jitter: expected a finite number of at least 0, got {jitter!r}")
        self.speed, self.jitter, self.seed = speed, jitter, seed
        self.draws: dict[int, np.random.Generator] = {}

    def factor(self, rank: int) -> float:
        """How many times as long the next section of a rank takes."""
        if not self.jitter:
            return self.speed[rank]
        draw = self.draws.setdefault(rank, np.random.default_rng([self.seed, rank]))
        return self.speed[rank] * math.exp(self.jitter * draw.standard_normal())


def stragglers(n_ranks: int, n: int, factor: float, seed: int = 0) -> Sequence[float]:
    """A speed for each rank: n of them, drawn from the seed, take `factor` times as long."""
    speed = np.ones(n_ranks)
    speed[np.random.default_rng(seed).choice(n_ranks, n, replace=False)] = factor
    return speed.tolist()
