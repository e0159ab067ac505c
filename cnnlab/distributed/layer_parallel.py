"""Layers shared among ranks: every rank takes whole batches, and a block of each layer's work."""

from cnnlab.training.method import Method


class LayerParallel(Method):
    """Every rank takes every step; the strategy `partitioned` shares the work within a layer."""

    kernels = "partitioned"

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.comm.Barrier()
