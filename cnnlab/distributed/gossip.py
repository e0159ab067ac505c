"""Gossip: every rank averages its model with those of its neighbours, and nobody has them all."""

import numpy as np

from cnnlab.distributed.averaging import Averaging
from cnnlab.distributed.graphs import GRAPHS
from cnnlab.runtime.arguments import one_of
from cnnlab.training.replica import Replica

TAG = 79  # keeps these messages apart from the caller's


class Gossip(Averaging):
    """Models are averaged along a graph, with the weights of a doubly stochastic matrix W.

    With x_j for the model of rank j, every rank i does

        x_i ← Σ_j W_ij x_j − rate × gradient at x_i

    all with the *old* values (Lian and others, Can decentralized algorithms outperform centralized
    algorithms?, 2017). Ranks meet every `every` steps, along `graph`, one of GRAPHS. What has been
    learned is the mean of all models; the ranks go on with their own. Raises ValueError for an
    unknown graph.
    """

    def __init__(self, comm, every: int = 1, graph: str = "ring"):
        super().__init__(comm, every)
        one_of("graph", graph, GRAPHS)
        self.graph, self.matrices = graph, GRAPHS[graph].matrices(self.size)

    def facts(self) -> dict[str, object]:
        """The graph, too."""
        return super().facts() | {"graph": self.graph}

    def meet(self, replica: Replica) -> None:
        """Average this rank's model with those of its neighbours."""
        turn = self.n_steps // self.every % len(self.matrices)
        replica.params.flat[:] = self.mixed(replica.params.flat, self.matrices[turn])

    def mixed(self, model: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """This rank's row of `weights` (P, P) times the models of all; zeros are not sent."""
        me, arrivals = self.rank, {}
        for rank in np.flatnonzero(weights[me]):
            if rank != me:
                theirs = np.empty_like(model)
                arrivals[rank] = self.comm.Irecv(theirs, int(rank), TAG), theirs
        requests = [
            self.comm.Isend(model, int(rank), TAG)
            for rank in np.flatnonzero(weights[:, me])
            if rank != me
        ]
        found = model * model.dtype.type(weights[me, me])
        for rank, (request, theirs) in arrivals.items():  # in the order of ranks: the same bits
            request.Wait()
            found += model.dtype.type(weights[me, rank]) * theirs
        for request in requests:
            request.Wait()
        return found
