"""Sums over ranks with fewer numbers: each sends those that it chose, and streams are merged."""

from collections.abc import Callable

import numpy as np

from cnnlab.distributed.compressed import CompressedSum
from cnnlab.distributed.compressors import compressor
from cnnlab.distributed.compressors.base import Compressor
from cnnlab.ranks import sparse


class StreamSum:
    """Adds up what each rank has chosen of its gradient, by a sparse allreduce.

    The sum is that of the streams, exactly, so that what a rank does not send is owed by it alone.
    `n_sent` counts the bytes that this rank has sent.
    """

    def __init__(self, comm, make: Callable):
        self.comm, self.make, self.chosen, self.n_sent = comm, make, None, 0

    def add_up(self, flat: np.ndarray, n_images: int = 1) -> None:
        """Replace float32 (n) by the sum of what all ranks chose: the same on each of them.

        `n_images` is the batch of all ranks, over which gradients are summed.
        """
        if self.chosen is None or self.chosen.n != flat.size:
            self.begin(flat.size)
        places, values = self.chosen.choose(flat, n_images, self.comm.size)
        self.n_sent += sparse.allreduce(self.comm, places, values, flat)

    def begin(self, n: int) -> None:
        """Make the compressor for n numbers."""
        self.chosen = self.make(n, self.comm.rank)

    @property
    def compressors(self) -> list[Compressor]:
        """The one of this rank."""
        return [self.chosen]


def summing(comm, compress: str | Callable) -> CompressedSum | StreamSum:
    """What adds up gradients: `compress` names one of COMPRESSORS, or makes one of (n, seed)."""
    make = compress if callable(compress) else compressor(compress)
    return (StreamSum if make(1).streams else CompressedSum)(comm, make)
