"""Layers shared among ranks: every rank takes whole batches, and a block of each layer's work."""

import importlib.util
from types import SimpleNamespace

from cnnlab.kernels import CONTRACT, KERNELS, Strategy
from cnnlab.training.method import Method


class LayerParallel(Method):
    """Every rank takes every step; the strategy `partitioned` shares the work within a layer."""

    kernels = "partitioned"

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.comm.Barrier()


def partitioned(comm, of: Strategy) -> Strategy:
    """The strategy `partitioned` for the ranks of `comm`, who compute their blocks as `of` does.

    The listed one knows the ranks of mpiexec alone. This is a module of its own, with its own room
    for blocks, so that virtual ranks, which live in one process, do not write to each other's.
    """
    listed = KERNELS[LayerParallel.kernels]
    spec = importlib.util.find_spec(f"cnnlab.kernels.{listed.name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.communicator = lambda: comm
    module.vector = SimpleNamespace(**{name: of.kernel(name) for name in CONTRACT})
    return Strategy(listed.name, listed.summary, module=module, together=True)
