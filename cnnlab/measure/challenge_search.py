"""The challenge of a search: the best accuracy on held-out images, with the race's budget."""

from collections.abc import Callable, Sequence

import numpy as np

from cnnlab.check.searching import promises
from cnnlab.measure.search_race import BUDGET, leaders, trainer
from cnnlab.training.search import Here, Search, run


def challenge_search(
    mine: Callable[[int], Search], best: float, *, budget: int = BUDGET, seeds: Sequence[int] = (),
    evaluate=None,
) -> float | None:  # fmt: skip
    """Run a search with several seeds and say how its median compares with the `best` known.

    `mine(seed)` makes it; ... is not yet one. It has to keep the promises of every search and the
    `budget`. `seeds` are others than the race's, unless given, for those are known by now. Returns
    the median, None where there is none.
    """
    if not callable(mine) or mine(0) is None:
        print("challenge: not yet answered")
        return None
    verdict = promises(lambda: mine(0))
    if not verdict.report():
        return None
    if mine(0).budget != budget:
        print(f"✗ budget: expected {budget} epochs, got {mine(0).budget}")
        return None
    seeds = seeds or range(100, 105)
    last = [leaders(run(mine(seed), Here(evaluate or trainer())))[-1] for seed in seeds]
    held, test = (np.median([getattr(one, kind) for one in last]) for kind in ("score", "test"))
    print(f"{held:.1%} on held-out images, {test:.1%} on the test: the median of {len(last)} seeds")
    print(
        f"The best median of the lesson is {best:.1%}: yours is {100 * (held - best):+.1f} points"
    )
    return float(held)
