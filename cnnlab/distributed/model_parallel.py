"""Model parallelism: each rank computes and holds its share of every layer."""

import numpy as np

from cnnlab.distributed.holder import Holder, Part
from cnnlab.distributed.piece import Piece
from cnnlab.training.replica import Replica


class ModelParallel(Holder):
    """All ranks take every batch; within each layer, they share it `by` features or pixels.

    By features, a rank has some of the filters, so parameters and their gradients never travel;
    inputs do, and the partial sums of their gradients. By pixels, it has some rows of the maps, and
    a halo travels; the filters are the same everywhere, and their gradients are added up.
    """

    def __init__(self, comm, cut: str = "features"):
        super().__init__(comm)
        self.by = cut

    def cut(self, replica: Replica) -> np.ndarray:
        """The positions of the parameters that this rank holds."""
        network = replica.params.network
        self.piece = Piece(network, replica.strategy, 0, len(network.places), self.comm, self.by)
        return self.piece.positions

    def begin(self, part: Part) -> None:
        """Let the piece compute with the part's arrays."""
        self.piece.hold(part.params.flat, part.grads.flat)

    def gradients(self, replica: Replica, part: Part, chosen: np.ndarray) -> float:
        """Loss of a batch, told on rank 0; gradients of this rank's parameters."""
        x, labels = replica.strategy.take(replica.images, chosen), replica.labels[chosen]
        y, kept = self.piece.forward(x)
        loss, dy = self.piece.loss(y, labels)
        _, of_outputs = self.piece.backward(kept, dy)
        self.piece.add_gradients(kept, of_outputs)
        self.piece.add_shared()
        return loss
