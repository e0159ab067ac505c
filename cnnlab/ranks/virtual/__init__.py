"""The virtual world: rank programs on as many ranks as you like, in one process, on a clock."""

from cnnlab.ranks.virtual.examine import examine
from cnnlab.ranks.virtual.faults import Deadlock, Fault, Faulty
from cnnlab.ranks.virtual.messages import Status
from cnnlab.ranks.virtual.network import (  # fmt: skip
    Link,
    Network,
    OneMemory,
    all_to_all,
    dgx1,
    network_of,
    one_memory,
    ring,
    stragglers,
    two_level,
)
from cnnlab.ranks.virtual.world import World

__all__ = [
    "Deadlock", "Fault", "Faulty", "Link", "Network", "OneMemory", "Status", "World", "all_to_all",
    "dgx1", "examine", "network_of", "one_memory", "ring", "stragglers", "two_level",
]  # fmt: skip
