"""Fewer numbers in fewer bits: the largest of each bucket, as levels of the bucket's scale."""

import numba
import numpy as np

from cnnlab.distributed.compressors.base import Compressor
from cnnlab.distributed.compressors.levels import Qsgd
from cnnlab.distributed.compressors.packing import BUCKET
from cnnlab.distributed.compressors.topk import select


@numba.njit
def select_in_buckets(values, bucket, k, places, chosen):
    """The k largest of each bucket of `values` (n), and their places within it, in order.

    places int32 and chosen float32 (all of them): a last bucket with fewer than k gives all it has.
    """
    first = 0
    for start in range(0, values.size, bucket):
        part = values[start : start + bucket]
        last = first + min(k, part.size)
        select(part, places[first:last], chosen[first:last])
        first = last


class Levels(Qsgd):
    """QSGD whose buckets are the k numbers chosen from one bucket of the gradient."""

    def __init__(self, n: int, seed: int, bucket: int):
        self.bucket = bucket
        super().__init__(n, seed, 4)


class TopLevels(Compressor):
    """The k largest of every 512 numbers, in 4 bits; what is lost stays in the residual.

    Quantised TopK SGD (Renggli and others 2019). A number takes 2.5 bytes: its place in the bucket,
    uint16, and a sign and a level of 3 bits. The sum of many such messages has places enough to be
    sent whole, in 4 bits a number, too.
    """

    feedback = True

    def __init__(self, n: int, seed: int = 0, argument: object = 16):
        if not str(argument).isdecimal() or not 0 < int(argument) <= BUCKET:
            raise ValueError(f"compress: expected 1 to {BUCKET} of a bucket, got {argument}")
        super().__init__(n, seed)
        self.k = int(argument)
        sizes = np.diff(np.append(np.arange(0, n, BUCKET), n)) if n else np.zeros(0, int)
        kept = np.minimum(sizes, self.k)
        self.starts = np.repeat(BUCKET * np.arange(len(sizes)), kept)  # of each place's bucket
        self.places = np.empty(self.starts.size, np.int32)
        self.chosen = np.empty(self.starts.size, np.float32)
        self.levels = Levels(self.starts.size, seed, self.k)

    @property
    def n_bytes(self) -> int:
        """The length of every message: places of 2 bytes, then scales and levels."""
        return 2 * self.places.size + self.levels.n_bytes

    def pack(self, values: np.ndarray) -> np.ndarray:
        """The message for these values alone."""
        select_in_buckets(values, BUCKET, self.k, self.places, self.chosen)
        self.levels.n_messages = self.n_messages - 1  # which a checkpoint keeps
        levels = self.levels.encode(self.chosen)
        return np.concatenate([levels, self.places.astype(np.uint16).view(np.uint8)])

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        """Write what a message stands for to `values` (n): zero where nothing was sent."""
        split = self.levels.n_bytes
        self.levels.decode(message[:split], self.chosen)
        values[:] = 0
        values[self.starts + message[split:].view(np.uint16)] = self.chosen

    def of_sum(self) -> Compressor:
        """What the owner of a sum sends it with."""
        return Qsgd(self.n, self.seed, 4)
