"""The virtual world: rank programs on as many ranks as you like, in one process, on a clock."""

from cnnlab.ranks.virtual.deadlock import Deadlock
from cnnlab.ranks.virtual.examine import examine
from cnnlab.ranks.virtual.faults import Fault, Faulty
from cnnlab.ranks.virtual.link import Link
from cnnlab.ranks.virtual.messages import Status
from cnnlab.ranks.virtual.pace import stragglers
from cnnlab.ranks.virtual.topology import Network, all_to_all, dgx1, ring, two_level
from cnnlab.ranks.virtual.world import World

__all__ = [
    "Deadlock", "Fault", "Faulty", "Link", "Network", "Status", "World",
    "all_to_all", "dgx1", "examine", "ring", "stragglers", "two_level",
]  # fmt: skip
