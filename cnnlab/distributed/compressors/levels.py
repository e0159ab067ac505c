"""Compressors that send a scale for each bucket of numbers, and for each number a level of it."""

import numpy as np

from cnnlab.distributed.compressors.base import Compressor
from cnnlab.distributed.compressors.packing import (
    BUCKET,
    dequantise,
    maxima,
    pack,
    quantise,
    unpack,
)


class Qsgd(Compressor):
    """QSGD (Alistarh and others 2017): a sign, and a level of the bucket's largest number.

    Of so many bits, one is the sign. A level is rounded up or down by chance, so that the mean is
    right. The chances come from the seed and the number of the message: the same in every run.
    """

    by_chance, bucket = True, BUCKET

    def __init__(self, n: int, seed: int = 0, argument: object = 4):
        if str(argument) not in ("2", "4", "8"):
            raise ValueError(f"compress: expected 2, 4 or 8 bits, got {argument}")
        super().__init__(n, seed)
        self.bits, self.most = int(argument), 2 ** (int(argument) - 1) - 1
        self.n_buckets, self.n_packed = -(-n // self.bucket), -(-n * self.bits // 8)
        self.codes = np.zeros(self.n_packed * 8 // self.bits, np.uint8)

    @property
    def n_bytes(self) -> int:
        """The length of every message: scales of 4 bytes, then the packed levels."""
        return 4 * self.n_buckets + self.n_packed

    def pack(self, values: np.ndarray) -> np.ndarray:
        """The message for these values alone."""
        message = np.empty(self.n_bytes, np.uint8)
        scales, packed = self.parts(message)
        maxima(values, self.bucket, scales)
        chance = (self.seed * 0x10001 + self.n_messages) % 2**31 + 1 if self.by_chance else 0
        quantise(values, self.bucket, scales, self.most, chance, self.codes)
        pack(self.codes, self.bits, packed)
        return message

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        """Write what a message stands for to `values` (n)."""
        scales, packed = self.parts(message)
        unpack(packed, self.bits, self.codes)
        dequantise(self.codes, self.bucket, scales, self.most, values)

    def parts(self, message: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scales and the packed levels of a message."""
        return message[: 4 * self.n_buckets].view(np.float32), message[4 * self.n_buckets :]


class TernGrad(Qsgd):
    """TernGrad (Wen and others 2017): QSGD with one level and one scale for all."""

    def __init__(self, n: int, seed: int = 0, argument: object = 2):
        if str(argument) != "2":
            raise ValueError(f"compress: expected 2 bits for terngrad, got {argument}")
        self.bucket = max(1, n)
        super().__init__(n, seed, argument)


class Nearest(Qsgd):
    """The nearest level: not right in the mean, but never off by more than half a level."""

    by_chance = False

    def __init__(self, n: int, seed: int = 0, argument: object = 8):
        super().__init__(n, seed, argument)
