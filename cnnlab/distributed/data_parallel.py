"""Data parallelism: each rank takes a share of every batch, and the gradients are added up."""

import functools
import importlib.util
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from cnnlab.distributed import compression
from cnnlab.distributed.compression import summing
from cnnlab.distributed.shared_window import one_machine, team
from cnnlab.kernels import CONTRACT, KERNELS, Strategy, allreduce
from cnnlab.kernels.workers import Workers
from cnnlab.network import Parameters
from cnnlab.training.method import Method, Together
from cnnlab.training.replica import Loop, Replica


class DataParallel(Together):
    """All ranks hold the same parameters and draw the same batches; each takes a share of them.

    `step` is the whole method: gradients of the share, one allreduce, the same update everywhere.
    Where the strategy has compiled loops, `loop` does the same without Python in between: ranks of
    one machine add up gradients in memory that they share, others by message. `compress` says what
    is sent instead of gradients, see `summing`.
    """

    def __init__(self, comm, compress: str | None = None):
        super().__init__(comm)
        self.compress, self.compressed = compress, compress and summing(comm, compress)

    def step(self, replica: Replica, chosen: np.ndarray) -> float:
        loss = replica.gradients(chosen[self.share(len(chosen))])
        self.add_up(replica.grads.flat, len(chosen))
        replica.update(len(chosen))
        return loss

    def facts(self) -> dict[str, object]:
        """The compressor, and where it keeps something the number of ranks."""
        if self.compress in (None, "none"):
            return {}
        return {"compress": self.compress} | ({"ranks": self.size} if self.kept else {})

    def make_room(self, replica: Replica) -> None:
        """Room for residuals of all ranks."""
        self.kept = compression.room(self.compressed, replica.grads.flat.size)

    def epoch(self, replica: Replica, order: np.ndarray, tell: Callable) -> float:
        """This rank's program for an epoch, from the residuals that the last one has left."""
        compression.load(self.compressed, self.kept)
        return super().epoch(replica, order, tell)

    def gather(self, replica: Replica) -> None:
        """After an epoch, bring the residuals of all ranks to each."""
        compression.store(self.compressed, self.kept)

    def add_up(self, flat: np.ndarray, n_images: int) -> None:
        """Replace gradients of a batch of `n_images` by their sum over all ranks."""
        if self.compressed:
            self.compressed.add_up(flat, n_images)
        else:
            self.comm.Allreduce(flat.copy(), flat)

    def loop(self, replica: Replica) -> Loop | None:
        """The strategy's compiled loop, which does what `step` does; None where there is none."""
        if self.compressed:
            return None
        if self.size == 1 or not replica.loop():
            return replica.loop()
        if not hasattr(self.comm, "Split_type"):  # compiled code knows MPI alone
            return None
        if not replica.strategy.parallel and self.one_machine:
            return self.in_memory(replica)
        if allreduce.reachable():
            messages = allreduce.messages(self.comm)
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


class LayerParallel(Method):
    """Every rank takes every step; the strategy `partitioned` shares the work within a layer."""

    kernels = "partitioned"

    def barrier(self) -> None:
        self.comm.Barrier()


def partitioned(comm, group: Strategy) -> Strategy:
    """The strategy `partitioned` for the ranks of `comm`, who compute their blocks as `group` does.

    The listed one knows the ranks of mpiexec alone. This is a module of its own, with its own room
    for blocks, so that virtual ranks, which live in one process, do not write to each other's.
    """
    listed = KERNELS[LayerParallel.kernels]
    spec = importlib.util.find_spec(f"cnnlab.kernels.{listed.name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.communicator = lambda: comm
    module.vector = SimpleNamespace(**{name: group.kernel(name) for name in CONTRACT})
    return Strategy(listed.name, listed.summary, module=module, together=True)
