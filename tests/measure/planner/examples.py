"""Ways and machines that the tests of the planner share."""

from cnnlab.measure.planner.machine import Machine
from cnnlab.measure.planner.plan import WAYS
from cnnlab.measure.planner.problem import Problem
from cnnlab.network import NETWORKS
from cnnlab.ranks.virtual import Link

SLOW_TO_COMPILE = ("int8", "qsgd4", "topk:0.01")
QUICK = {name: way for name, way in WAYS.items() if not name.endswith(SLOW_TO_COMPILE)}
VIRTUAL = Machine(Link())


def problem(network="lenet5", n_ranks=4, batch=32):
    return Problem(NETWORKS[network], n_ranks, batch)
