"""What a batch learns with the rate that suits it, and how many steps it takes to get there."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cnnlab.training import Diverged, train


class Tuned(NamedTuple):
    """The best of some rates, and what each epoch came to with it: rows with an "accuracy"."""

    rate: float
    history: list[dict]

    @property
    def last(self) -> float:
        """The accuracy in the end; 0 where no rate learned."""
        return self.history[-1]["accuracy"] if self.history else 0.0


def tuned(data, batches: Sequence[int], rates: Sequence[float], epochs: int) -> dict[int, Tuned]:
    """For each batch, the rate whose test accuracy is the highest in the end."""
    return {
        n: max(
            (Tuned(rate, trained(data, n, rate, epochs)) for rate in rates), key=lambda t: t.last
        )
        for n in batches
    }


def trained(data, batch: int, rate: float, epochs: int) -> list[dict]:
    """The rows of a training, with the test accuracy as "accuracy"; none where it diverges."""
    try:
        history = train(data, batch=batch, rate=rate, epochs=epochs, progress=False).history
    except Diverged:
        return []
    return [row | {"accuracy": row["test_accuracy"]} for row in history]


def reached_by_all(found: Mapping[int, Tuned]) -> float:
    """The highest accuracy, in whole per cent, that every batch has reached."""
    best = (max((row["accuracy"] for row in one.history), default=0.0) for one in found.values())
    return math.floor(100 * min(best)) / 100


def epochs_to(target: float, one: Tuned) -> int:
    """The first epoch whose accuracy is the target; raises ValueError where none is."""
    for row in one.history:
        if row["accuracy"] >= target:
            return row["epoch"]
    raise ValueError(
        f"target: expected at most {one.last:.1%}, which was reached, got {target:.1%}"
    )
