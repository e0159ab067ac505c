"""What a worker sends to a server: a gradient, whole or compressed, and of which images."""

from collections.abc import Callable

import numpy as np

from cnnlab.distributed.compressors import compressor

HEAD = 4  # numbers before a gradient: its loss, worker, first image, and the one after the last


class Parcels:
    """Messages of bytes, all of one length: HEAD numbers of 8 bytes, and a gradient.

    `compress` names one of COMPRESSORS, is a function of (n, seed) that makes one, or is None:
    gradients go whole, in their own precision. Each rank has a compressor, with its residual; that
    of the server only decodes. Raises ValueError for compressors whose messages differ in length.
    """

    def __init__(self, comm, compress: str | Callable | None = None):
        self.comm, self.compressors = comm, []
        self.make = compress if callable(compress) or not compress else compressor(compress)

    def begin(self, n: int) -> None:
        """Make this rank's compressor for n numbers."""
        self.compressors = [self.make(n, self.comm.rank)]
        if self.compressors[0].streams:
            raise ValueError("compress: expected messages of one length, got streams")

    def empty(self, like: np.ndarray) -> np.ndarray:
        """Room for a message of a gradient such as `like`, uint8."""
        if self.make and not self.compressors:
            self.begin(like.size)
        n_bytes = self.compressors[0].n_bytes if self.make else like.nbytes
        return np.empty(8 * HEAD + n_bytes, np.uint8)

    def write(self, message: np.ndarray, gradient: np.ndarray, loss: float, *head: int) -> None:
        """Put a gradient (n), its loss and HEAD − 1 whole numbers into a message."""
        message[:8] = np.array([loss], np.float64).view(np.uint8)
        message[8 : 8 * HEAD] = np.array(head, np.int64).view(np.uint8)
        whole = gradient.astype(np.float32, copy=False) if self.make else gradient
        packed = self.compressors[0].encode(whole) if self.make else whole.view(np.uint8)
        message[8 * HEAD :] = packed

    def read(self, message: np.ndarray, gradient: np.ndarray) -> list[float]:
        """Write what a message stands for to `gradient`; its HEAD numbers."""
        packed = message[8 * HEAD :]
        if self.make:
            found = np.empty(gradient.size, np.float32)
            self.compressors[0].decode(packed, found)
            gradient[:] = found
        else:
            gradient.view(np.uint8)[:] = packed
        return message[:8].view(np.float64).tolist() + message[8 : 8 * HEAD].view(np.int64).tolist()
