"""The challenge of a planner: a machine on which it is wrong."""

from collections.abc import Sequence

from cnnlab.measure.planner import checked
from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.plan import WAYS, plans
from cnnlab.measure.planner.problem import Problem
from cnnlab.network import NETWORKS
from cnnlab.ranks.virtual import Link

MOST = 16  # ranks: more take the patience of a reader


def challenge_plan(
    link: str, n_ranks: int, batch: int, names: Sequence[str], network: str = "lenet5"
) -> float | None:
    """Plan a step of each way, run it in the virtual world, and say what the plan would cost.

    `link` is a text such as "10us,1GB/s"; ... is not yet one. Returns the seconds of the way that
    is planned to be fastest over those of the one that is; None without a challenge.
    """
    if link is ... or n_ranks is ... or batch is ...:
        print("challenge: not yet answered")
        return None
    if not 2 <= n_ranks <= MOST:
        raise ValueError(f"n_ranks: expected 2 to {MOST}, got {n_ranks}")
    problem = Problem(NETWORKS[network], n_ranks, batch)
    found = plans(problem, Machine(Link.parse(link)), {name: WAYS[name] for name in names})
    seen = checked.virtual(network, n_ranks, batch, link, found)
    chosen, best = (
        min(found, key=lambda name: found[name].seconds),
        min(seen, key=lambda name: seen[name].seconds),
    )
    lost = seen[chosen].seconds / seen[best].seconds
    print(f"planned: {chosen}; fastest: {best}; the plan takes {lost:.3f} times as long")
    print(checked.agreement(found, {name: its.seconds for name, its in seen.items()}))
    return lost
