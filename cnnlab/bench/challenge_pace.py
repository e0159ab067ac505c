"""The challenge of a pace: the fewest virtual seconds to an accuracy."""

from cnnlab.bench.virtual_steps import training_seconds
from cnnlab.training.pace import Pace, follow


def challenge_pace(
    mine: Pace, data, target: float, best: float, *, optimizer: str = "sgd", epochs: int = 8,
    n_ranks: int = 64, **network,
) -> float | None:  # fmt: skip
    """Train at a pace and say how its virtual seconds to an accuracy compare with the `best` known.

    `mine` is a function of the epochs done that returns batch and rate; ... is not yet one.
    `network` is that of `training_seconds`: `compute`, `link`, `n_numbers`. Returns
    the virtual seconds, None where the accuracy was not reached.
    """
    if not callable(mine) or mine(0.0) is None:
        print("challenge: not yet answered")
        return None
    looks = follow(mine, data, optimizer=optimizer, epochs=epochs, target=target)
    if looks[-1].accuracy < target:
        reached = max(look.accuracy for look in looks)
        print(f"✗ {reached:.1%} after {epochs} epochs at best; the goal is {target:.0%}")
        return None
    seconds = training_seconds(looks, n_ranks, **network)
    times = f"{best / seconds:.2f} times as fast as the best of the lesson"
    print(f"{target:.0%} after {looks[-1].steps:,} steps: {1e3 * seconds:,.0f} virtual ms on "
          f"{n_ranks} ranks, {times}")  # fmt: skip
    return seconds
