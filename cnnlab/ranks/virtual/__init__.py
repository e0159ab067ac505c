"""The virtual world: rank programs on as many ranks as you like, in one process, on a clock."""

from cnnlab.ranks.virtual.examine import examine
from cnnlab.ranks.virtual.faults import Deadlock, Fault, Faulty
from cnnlab.ranks.virtual.messages import Status
from cnnlab.ranks.virtual.network import Link
from cnnlab.ranks.virtual.world import World

__all__ = ["Deadlock", "Fault", "Faulty", "Link", "Status", "World", "examine"]
