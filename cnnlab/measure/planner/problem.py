"""What is to be planned."""

from dataclasses import dataclass
from math import prod

from cnnlab.network import Network


@dataclass(frozen=True)
class Problem:
    """What is to be trained: a network, on batches of all ranks together, with plain SGD."""

    network: Network
    n_ranks: int
    batch: int

    @property
    def n(self) -> int:
        """The number of parameters."""
        return sum(map(prod, self.network.parameter_shapes.values()))

    @property
    def share(self) -> int:
        """The images of a rank, where ranks share them: the most."""
        return -(-self.batch // self.n_ranks)
