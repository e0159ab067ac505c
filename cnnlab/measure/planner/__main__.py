"""What a step of each way to train would take, send and hold; the shortest first.

    python -m cnnlab.measure.planner --network lenet5 --ranks 8 --link 10us,1GB/s --batch 64

Nothing is trained, so time to accuracy is not told: ways marked * learn something else than one
rank does. A hybrid has as many pipelines, N, as there are ranks for. Kernels take what they take
here on one core; with --virtual, what the virtual world charges for them.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

from cnnlab.measure.planner import checked, probe
from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.plan import WAYS, Plan, Way, plans
from cnnlab.measure.planner.problem import Problem
from cnnlab.network import NETWORKS
from cnnlab.ranks.virtual import Link
from cnnlab.runtime.arguments import at_least, parse_whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of plans and return the exit status."""
    how = {"description": __doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="python -m cnnlab.measure.planner", **how)
    option = parser.add_argument
    option("--network", choices=NETWORKS, default="report", help="(default: report)")
    option("--ranks", type=parse_whole, default=4, metavar="N", help="from 2 (default: 4)")
    option("--batch", type=parse_whole, default=64, metavar="N", help="of all ranks (default: 64)")
    option(
        "--link", default="10us,1GB/s", metavar="L,B", help="between ranks (default: 10us,1GB/s)"
    )
    option("--memory", type=parse_whole, metavar="N", help="numbers that a rank may hold")
    option("--virtual", action="store_true", help="kernels as the virtual world charges them")
    chosen = parser.parse_args(arguments)
    try:
        at_least("--ranks", chosen.ranks, 2)
        link, network = Link.parse(chosen.link), NETWORKS[chosen.network]
    except ValueError as problem:
        parser.exit(2, f"{problem}\n")
    machine = Machine(link) if chosen.virtual else probe.alone(link, network, compressors(WAYS))
    print(table(plans(Problem(network, chosen.ranks, chosen.batch), machine), chosen.memory))
    return 0


def compressors(ways: Mapping[str, Way]) -> set[str]:
    """Those that the ways name."""
    return {str(way.options["compress"]) for way in ways.values() if "compress" in way.options}


def table(found: Mapping[str, Plan], memory: int | None = None) -> str:
    """A line for each plan that holds no more numbers than `memory`, the shortest step first."""
    fit = [plan for plan in found.values() if memory is None or plan.held <= memory]
    if not fit:
        return f"none of {len(found)} holds at most {memory:,}"
    fit.sort(key=lambda plan: plan.seconds)
    marks = {plan.name: " *" * (WAYS[plan.name].learns != WAYS["alone"].learns) for plan in fit}
    return checked.table({plan.name + marks[plan.name]: plan for plan in fit})


if __name__ == "__main__":
    sys.exit(main())
