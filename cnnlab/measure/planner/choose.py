"""Which plan to take: curves of trainings turn the time of a step into time to accuracy."""

from collections.abc import Mapping, Sequence
from math import inf

from cnnlab.distributed import METHODS
from cnnlab.measure.planner.plan import WAYS, Plan
from cnnlab.network import Network
from cnnlab.ranks.virtual import World
from cnnlab.training import train

Curve = Sequence[tuple[int, float]]  # steps done, and the test accuracy then


def recommend(
    plans: Mapping[str, Plan], curves: Mapping[str, Curve], target: float, memory: float = inf
) -> tuple[str, dict[str, str]]:
    """The plan that is first at an accuracy and holds at most `memory` numbers; of all, why or not.

    `curves` are by what a way learns, see `Way`. The name is "" where no plan will do.
    """
    seconds = {n: to_accuracy(plan, curves, target) for n, plan in plans.items()}
    able = [n for n, plan in plans.items() if seconds[n] < inf and plan.held <= memory]
    best, why = min(able, key=seconds.get, default=""), {}
    for name, plan in plans.items():
        if seconds[name] == inf:
            why[name] = f"does not reach {target:.0%}"
        elif plan.held > memory:
            why[name] = f"holds {plan.held:,} numbers"
        else:
            why[name] = f"{seconds[name] / seconds[best]:.2f} times as long"
    return best, why | ({best: f"first at {target:.0%}"} if best else {})


def to_accuracy(plan: Plan, curves: Mapping[str, Curve], target: float) -> float:
    """The seconds until an accuracy is reached; infinity if it is not."""
    return plan.seconds * steps_to(curves.get(WAYS[plan.name].learns, ()), target)


def steps_to(curve: Curve, target: float) -> float:
    """The steps after which an accuracy was first seen; infinity if it was not."""
    return next((steps for steps, accuracy in curve if accuracy >= target), inf)


def curve(name: str, data, n_ranks: int, *, network: Network, batch: int, **how) -> Curve:
    """What a way learns on so many virtual ranks: a look after each epoch. `how` is of `train`."""
    way, each = WAYS[name], -(-len(data.train_labels) // batch)
    how |= {"network": network, "batch": batch, "progress": False}

    def program(comm) -> list[dict]:
        method = METHODS[way.method].load()(comm, **way.on(n_ranks))
        return train(data, method=method, **how).history

    rows = World(n_ranks).run(program)[0] if n_ranks > 1 else train(data, **how).history
    return [(each * row["epoch"], row["test_accuracy"]) for row in rows]
