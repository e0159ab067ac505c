"""Compressors that send a scale for each bucket of numbers, and for each number a level of it."""

import numba
import numpy as np

from cnnlab.distributed.compressors.base import (
    BUCKET,
    Compressor,
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

    by_chance = True

    def __init__(self, n: int, seed: int = 0, argument: object = 4, bucket: int = BUCKET):
        if str(argument) not in ("2", "4", "8"):
            raise ValueError(f"compress: expected 2, 4 or 8 bits, got {argument}")
        super().__init__(n, seed)
        self.bucket = bucket
        self.bits, self.most = int(argument), 2 ** (int(argument) - 1) - 1
        self.n_buckets, self.n_packed = -(-n // self.bucket), -(-n * self.bits // 8)
        self.n_bytes = 4 * self.n_buckets + self.n_packed  # scales, then the packed levels
        self.codes = np.zeros(self.n_packed * 8 // self.bits, np.uint8)

    def pack(self, values: np.ndarray) -> np.ndarray:
        message = np.empty(self.n_bytes, np.uint8)
        scales, packed = self.parts(message)
        maxima(values, self.bucket, scales)
        chance = (self.seed * 0x10001 + self.n_messages) % 2**31 + 1 if self.by_chance else 0
        quantise(values, self.bucket, scales, self.most, chance, self.codes)
        pack(self.codes, self.bits, packed)
        return message

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
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
        super().__init__(n, seed, argument, bucket=max(1, n))


class Nearest(Qsgd):
    """The nearest level: not right in the mean, but never off by more than half a level."""

    by_chance = False

    def __init__(self, n: int, seed: int = 0, argument: object = 8):
        super().__init__(n, seed, argument)


@numba.njit(fastmath={"reassoc", "contract", "nsz"})
def signs(values, bucket, means, codes):
    """The sign of each of n values, 1 where it is negative, and two means for each bucket.

    means (B, 2): of those not negative, and of those that are, so that the bucket's sum stays.
    """
    for b in range(len(means)):
        part, out = values[b * bucket : (b + 1) * bucket], codes[b * bucket : (b + 1) * bucket]
        total, absolute, n_below = np.float32(0), np.float32(0), np.int32(0)
        for i in range(part.size):
            total += part[i]
            absolute += abs(part[i])
            out[i] = part[i] < 0
            n_below += np.int32(part[i] < 0)
        means[b, 0] = (total + absolute) / 2 / max(1, part.size - n_below)
        means[b, 1] = (total - absolute) / 2 / max(1, n_below)


@numba.njit
def from_signs(codes, bucket, means, values):
    """The mean that each sign stands for."""
    for b in range(len(means)):
        above, below = means[b, 0], means[b, 1]
        part, out = codes[b * bucket : (b + 1) * bucket], values[b * bucket : (b + 1) * bucket]
        for i in range(out.size):
            out[i] = below if part[i] else above


class OneBit(Compressor):
    """1-bit SGD (Seide and others 2014): a sign for each number, and two means for each bucket.

    What is lost is not small, and is kept: `feedback`. Without it, training goes astray.
    """

    feedback = True

    def __init__(self, n: int, seed: int = 0, argument: object = None):
        super().__init__(n, seed, argument)
        self.n_buckets, self.n_packed = -(-n // BUCKET), -(-n // 8)
        self.n_bytes = 8 * self.n_buckets + self.n_packed  # two means a bucket, then the bits
        self.codes = np.zeros(8 * self.n_packed, np.uint8)

    def pack(self, values: np.ndarray) -> np.ndarray:
        message = np.empty(self.n_bytes, np.uint8)
        means, packed = self.parts(message)
        signs(values, BUCKET, means, self.codes)
        pack(self.codes, 1, packed)
        return message

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        means, packed = self.parts(message)
        unpack(packed, 1, self.codes)
        from_signs(self.codes, BUCKET, means, values)

    def parts(self, message: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The means and the bits of a message."""
        split = 8 * self.n_buckets
        return message[:split].view(np.float32).reshape(-1, 2), message[split:]
