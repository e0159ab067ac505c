"""Data parallelism: each rank takes a share of every batch, and the gradients are added up."""

import functools

import numpy as np

from cnnlab.distributed.shared_window import one_machine, team
from cnnlab.kernels.compiled import allreduce_mpi
from cnnlab.kernels.compiled.workers import Workers
from cnnlab.network import Parameters
from cnnlab.ranks.schedules import block
from cnnlab.training.method import Method
from cnnlab.training.replica import Loop, Replica


class DataParallel(Method):
    """All ranks hold the same parameters and draw the same batches; each takes a share of them.

    `step` is the whole method: gradients of the share, one allreduce, the same update everywhere.
    Where the strategy has compiled loops, `loop` does the same without Python in between: ranks of
    one machine add up gradients in memory that they share, others by message (`window` off: also
    those of one machine).
    """

    def __init__(self, comm, window: bool = True):
        super().__init__(comm)
        self.window = window

    def share(self, n: int) -> slice:
        """This rank's block of n images; empty where there are more ranks than images."""
        return slice(*block(self.rank, self.size, n))

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        """One step on the batch `chosen` of all ranks; the loss of this rank's share."""
        loss = replica.gradients(chosen[self.share(len(chosen))])
        mine = replica.grads.flat.copy()
        self.comm.Allreduce(mine, replica.grads.flat)
        replica.update(len(chosen))
        return loss

    def total(self, number: float) -> float:
        """The sum of a number over all ranks."""
        return self.comm.allreduce(number)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.comm.Barrier()

    def loop(self, replica: Replica) -> Loop | None:
        """The strategy's compiled loop, which does what `step` does; None where there is none."""
        if self.size == 1 or not replica.loop():
            return replica.loop()
        if self.window and not replica.strategy.parallel and self.one_machine:
            return self.in_memory(replica)
        if allreduce_mpi.reachable():
            messages = allreduce_mpi.messages(self.comm)
            return replica.loop(Workers(self.rank, self.size, messages=messages))
        return None

    def in_memory(self, replica: Replica) -> Loop:
        """The loop with gradients added up in memory that all ranks share."""
        size = replica.grads.flat.size
        shared = team(self.comm, size)
        own = Parameters(replica.params.network, flat=shared.parts[self.rank, :size])
        steps = replica.loop(Workers(self.rank, self.size, team=shared), own)

        def run(order: np.ndarray) -> float:
            loss = steps(order)
            replica.grads.flat[:] = shared.total
            return loss

        return run

    @functools.cached_property
    def one_machine(self) -> bool:
        """Whether the ranks could share memory."""
        return one_machine(self.comm)


class Overlapping(DataParallel):
    """Data parallelism in two halves: one's message is on its way while the other is computed."""

    def loop(self, replica: Replica) -> None:
        """No compiled loop: each step is led by Python."""

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        """One step on the batch `chosen` of all ranks; the loss of this rank's share."""
        mine, grads, loss = chosen[self.share(len(chosen))], replica.grads.flat, 0.0
        halves = mine[: len(mine) // 2], mine[len(mine) // 2 :]
        sent, totals = np.empty(
            (2, 2, grads.size), grads.dtype
        )  # kept while messages are under way
        requests = []
        for half, own, total in zip(halves, sent, totals, strict=True):
            loss += replica.gradients(half)
            own[:] = grads
            requests.append(self.comm.Iallreduce(own, total))
        for request in requests:
            request.Wait()
        np.add(*totals, out=grads)
        replica.update(len(chosen))
        return loss
