"""Graphs of ranks that gossip, as mixing matrices: who averages whose model, with which weight.

Row i of a matrix W (P, P) has the weights with which rank i averages the models of all ranks, zero
for those that are not its neighbours. Rows and columns add up to 1 (doubly stochastic): so ranks
that agree stay as they are, and the mean over all ranks stays where it is.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cnnlab.distributed.holder import check_apart
from cnnlab.runtime.arguments import at_least, one_of
from cnnlab.training.method import IN_A_ROW, Together
from cnnlab.training.replica import Replica


class Graph(NamedTuple):
    """A line about a graph, and its function of the number of ranks that returns its matrices.

    They are used in turn, one each time that ranks meet.
    """

    summary: str
    matrices: Callable[[int], list[np.ndarray]]


def ring(n: int) -> list[np.ndarray]:
    """Each rank with the one before it and the one after it."""
    return [metropolis(n, [(i, (i + 1) % n) for i in range(n)])]


def grid(n: int) -> list[np.ndarray]:
    """Rows and columns, as nearly as many of each as n allows; up, down, left and right."""
    rows = max(r for r in range(1, math.isqrt(n) + 1) if n % r == 0)
    columns = n // rows
    across = [(i, i + 1) for i in range(n) if (i + 1) % columns]
    return [metropolis(n, across + [(i, i + columns) for i in range(n - columns)])]


def exponential(n: int) -> list[np.ndarray]:
    """Each rank receives from those 1, 2, 4, … before it, all with the same weight."""
    hops = [0, *powers(n)]
    return [sum(np.roll(np.eye(n), -hop, axis=1) for hop in hops) / len(hops)]


def one_peer(n: int) -> list[np.ndarray]:
    """Those of `exponential` one after the other: half of the own model, half of one other."""
    return [(np.eye(n) + np.roll(np.eye(n), -hop, axis=1)) / 2 for hop in powers(n) or [0]]


def powers(n: int) -> list[int]:
    """The powers of two below n."""
    return [1 << k for k in range((n - 1).bit_length())]


def metropolis(n: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """A doubly stochastic matrix (n, n) of an undirected graph.

    An edge weighs 1 / (1 + the larger of the degrees at its ends); a rank itself what is left
    (Xiao and Boyd, Fast linear iterations for distributed averaging, 2004).
    """
    linked = np.zeros((n, n), bool)
    for i, j in edges:
        linked[i, j] = linked[j, i] = i != j
    degree = linked.sum(1)
    weights = linked / (1.0 + np.maximum.outer(degree, degree))
    return weights + np.diag(1 - weights.sum(1))


GRAPHS = {
    "ring": Graph("the ranks before and after", ring),
    "grid": Graph("in rows and columns", grid),
    "exponential": Graph("the ranks 1, 2, 4, … before", exponential),
    "one-peer": Graph("these one after the other", one_peer),
}


# --- ways to train in which each rank has a whole model of its own, and models are averaged -------


class Averaging(Together):
    """The base of these methods: a rank steps along its share of the batch, in its own model.

    In the first of every `every` steps, `meet` moves the model towards those of other ranks. All of
    a step begins at the old values: the gradient is taken there, `meet` sends them, and the update
    comes last. After an epoch, `result` is what is tested. A checkpoint keeps it, and the model and
    optimiser's state of every rank.
    """

    def __init__(self, comm, every: int):
        super().__init__(comm)
        at_least("every", every, 1)
        self.every, self.n_steps, self._of = every, 0, None

    def meet(self, replica: Replica) -> None:
        """Move the parameters of this rank towards those of others; all ranks call it."""
        raise NotImplementedError

    def result(self, models: np.ndarray) -> np.ndarray:
        """What an epoch leaves, of the models of all ranks (P, n): the same on each of them."""
        return models.mean(0)

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        """One step on this rank's share of the batch `chosen`; its loss."""
        if self._of is not replica:
            self.enter(replica)
        mine = chosen[self.share(len(chosen))]
        loss = replica.gradients(mine)
        if self.n_steps % self.every == 0:
            self.meet(replica)
        if len(mine):
            replica.update(len(mine))
        self.n_steps += 1
        return loss

    def make_room(self, replica: Replica) -> None:
        """Every rank's model and state: at first those of the replica."""
        own = self.own(replica)
        self.kept = {name: np.stack([array] * self.size) for name, array in own.items()}
        self._of = None

    def facts(self) -> dict[str, object]:
        """How often ranks meet; and how many there are, where each has kept something."""
        return {"every": self.every} | ({"ranks": self.size} if self.kept else {})

    def enter(self, replica: Replica) -> None:
        """Before the first step of an epoch: this rank's model and state take their places."""
        check_apart(replica.strategy)
        if not self.kept:
            self.make_room(replica)
        self.begin(replica)
        self._of, self.n_steps = replica, 0
        own = self.own(replica)
        for name, models in self.kept.items():
            own[name][...] = models[self.rank]

    def begin(self, replica: Replica) -> None:
        """An epoch begins; the parameters are still those that the last one has left."""

    def gather(self, replica: Replica) -> None:
        """After an epoch: keep the models and states of all ranks, and bring `result` to each."""
        for name, array in self.own(replica).items():
            self.kept[name][:] = self.comm.allgather(array)
        replica.params.flat[:] = self.result(self.kept["model of ranks"])
        self._of = None

    def own(self, replica: Replica) -> dict[str, np.ndarray]:
        """This rank's model and state, by their names in `kept`."""
        own = {"model": replica.params.flat, **replica.optimizer.state}
        return {f"{name} of ranks": array for name, array in own.items()}

    def loop(self, replica: Replica) -> None:
        """No compiled loop: Python leads each step."""

    def images_in_a_row(self, replica: Replica) -> int:
        """How many images one call of `steps` takes: ranks add up their loss after them."""
        return max(1, IN_A_ROW // replica.batch) * replica.batch


class Local(Averaging):
    """Each rank takes `every` steps on its shares of the batches; then all models are averaged.

    A model counts by the images it has learned from since the last average: with plain gradient
    descent and `every` = 1 this is data parallelism, up to rounding, also for a last, smaller batch
    (Stich, Local SGD converges fast and communicates little, 2019). The optimiser's state is
    averaged in the same way. An epoch ends with an average: there all ranks have the same
    model, which is all that a checkpoint holds, and any number of ranks may go on from it.
    """

    def __init__(self, comm, every: int = 8):
        super().__init__(comm, every)

    def make_room(self, replica: Replica) -> None:
        """Nothing: between epochs all ranks have the same model and state."""
        self._of = None

    def begin(self, replica: Replica) -> None:
        """No images yet since the last average: of this rank, and of all."""
        self.n_mine = self.n_all = 0

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        loss = super().step(replica, chosen)
        self.n_mine += len(chosen[self.share(len(chosen))])
        self.n_all += len(chosen)
        if self.n_steps % self.every == 0:
            self.average(replica)
        return loss

    def meet(self, replica: Replica) -> None:
        """Not before the step, but after it: see `step`."""

    def average(self, replica: Replica) -> None:
        """Replace model and state by their means over the ranks, weighed by images."""
        for array in self.own(replica).values():
            mine = array * array.dtype.type(self.n_mine / self.n_all)
            self.comm.Allreduce(mine, array)
        self.n_mine = self.n_all = 0

    def gather(self, replica: Replica) -> None:
        """After an epoch: the average, unless the last step was followed by one."""
        if self.n_all:
            self.average(replica)
        self._of = None


TOGETHER = 0.9  # the share of the way to the ranks' mean that the centre goes


class Elastic(Averaging):
    """A model moves a share `moving_rate` of its way to the centre, and pulls the centre as far.

    With α for `moving_rate`, every rank's model x and the centre c, which all ranks keep:

        x ← x − α (x − c) − rate × gradient at x        c ← c + α Σ (x − c)

    All right-hand sides have the *old* values, so that the two pulls are equal and opposite (Zhang,
    Choromanska and LeCun, Deep learning with elastic averaging SGD, 2015). Ranks meet every `every`
    steps. The centre is what has been learned: it is tested, and begins the next epoch with the
    ranks' own models. Raises ValueError unless 0 < α ≤ 2 / (P + 1): a meeting of P ranks multiplies
    the way from the centre to the mean of their models by 1 − (P + 1) α.
    """

    def __init__(self, comm, every: int = 8, moving_rate: float | None = None):
        super().__init__(comm, every)
        self.moving_rate = TOGETHER / self.size if moving_rate is None else moving_rate
        most = 2 / (self.size + 1)
        if not 0 < self.moving_rate <= most:
            raise ValueError(
                f"moving_rate: expected a number above 0, at most {most:.3g} "
                f"for {self.size} ranks, got {self.moving_rate!r}"
            )

    def facts(self) -> dict[str, object]:
        return super().facts() | {"moving_rate": self.moving_rate}

    def begin(self, replica: Replica) -> None:
        """The centre is what the last epoch has left."""
        self.centre = replica.params.flat.copy()

    def meet(self, replica: Replica) -> None:
        """Pull this rank's model and the centre towards each other."""
        pull = self.moving_rate * (replica.params.flat - self.centre)
        pulls = np.empty_like(pull)
        self.comm.Allreduce(pull, pulls)
        replica.params.flat -= pull
        self.centre += pulls

    def result(self, models: np.ndarray) -> np.ndarray:
        return self.centre


TAG = 79  # keeps these messages apart from the caller's


class Gossip(Averaging):
    """Models are averaged along a graph, with the weights of a doubly stochastic matrix W.

    With x_j for the model of rank j, every rank i does

        x_i ← Σ_j W_ij x_j − rate × gradient at x_i

    all with the *old* values (Lian and others, Can decentralized algorithms outperform centralized
    algorithms?, 2017). Ranks meet every `every` steps, along `graph`, one of GRAPHS. What has been
    learned is the mean of all models; ranks go on with theirs. ValueError for an unknown graph.
    """

    def __init__(self, comm, every: int = 1, graph: str = "ring"):
        super().__init__(comm, every)
        one_of("graph", graph, GRAPHS)
        self.graph, self.matrices = graph, GRAPHS[graph].matrices(self.size)

    def facts(self) -> dict[str, object]:
        return super().facts() | {"graph": self.graph}

    def meet(self, replica: Replica) -> None:
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
        results = model * model.dtype.type(weights[me, me])
        for rank, (request, theirs) in arrivals.items():  # in the order of ranks: the same bits
            request.Wait()
            results += model.dtype.type(weights[me, rank]) * theirs
        for request in requests:
            request.Wait()
        return results
