"""Numbers as they are, and the interface of all compressors; numbers of 16 bits."""

import numba
import numpy as np


class Compressor:
    """Messages that stand for n float32: here all their bytes. The base of every compressor.

    `encode` makes a message, uint8 (n_bytes); `decode` reads one. Where `feedback` is on, what a
    message does not say is kept in `residual`, and added to the next (Seide and others 2014).
    `state` has the arrays that a checkpoint keeps, by name; where chances come from the number of
    the message, `by_chance`, it keeps that, too. With `streams`, what `choose` returns is
    summed, and messages differ in length, see `StreamSum`.
    """

    feedback = by_chance = streams = False

    def __init__(self, n: int, seed: int = 0, argument: object = None):
        if argument is not None:
            raise ValueError(f"compress: expected no number of bits, got {argument}")
        self.n, self.seed, self.n_messages = n, seed, 0
        self.n_bytes = 4 * n  # of every message
        self.residual = np.zeros(n, np.float32) if self.feedback else None
        self.state = {"residual": self.residual} if self.feedback else {}

    def encode(self, values: np.ndarray) -> np.ndarray:
        """The message, uint8 (n_bytes), for float32 (n)."""
        self.n_messages += 1
        if self.residual is None:
            return self.pack(values)
        self.residual += values
        message, sent = self.pack(self.residual), np.empty_like(values)
        self.decode(message, sent)
        self.residual -= sent
        return message

    def pack(self, values: np.ndarray) -> np.ndarray:
        """The message for these values alone."""
        return values.view(np.uint8).copy()

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        """Write what a message stands for to `values` (n)."""
        values[:] = message.view(np.float32)

    def of_sum(self) -> "Compressor":
        """What the owner of a sum sends it with: the same, unless it sends sums otherwise."""
        return self


class Halves(Compressor):
    """Numbers of 16 bits: 11 bits of precision, and nothing above 65,504 but infinity."""

    def __init__(self, n: int, seed: int = 0, argument: object = None):
        super().__init__(n, seed, argument)
        self.n_bytes = 2 * n

    def pack(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint8)

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        values[:] = message.view(np.float16)


# --- numbers in fewer bits ------------------------------------------------------------------------

BUCKET = 512  # numbers that share a scale
# The bits of these.
INFINITE, NAN, UNSIGNED = 0x7F800000, 0x7FC00000, 0x7FFFFFFF  # the last: all bits but the sign
FLAGS = {"contract", "nsz", "arcp"}


@numba.njit(inline="always")
def uniform(i, seed):
    """A number in [0, 1) for each i, without a state: the last steps of MurmurHash3 (Appleby)."""
    x = np.uint32(np.uint32(i) * np.uint32(0x9E3779B9) + np.uint32(seed))
    x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    x = np.uint32((x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    x = np.uint32(x ^ (x >> np.uint32(16)))
    return np.float32(np.int32(x >> np.uint32(8))) * np.float32(2.0**-24)


@numba.njit
def maxima(values, bucket, scales):
    """The largest absolute value of each bucket of `values` (n); NaN if one of them is not finite.

    Compared as whole numbers: without its sign, a larger float32 has larger bits. They stay int32,
    so that a vector register holds as many as it can.
    """
    result = scales.view(np.int32)
    for b in range(scales.size):
        part, largest = values[b * bucket : (b + 1) * bucket].view(np.int32), np.int32(0)
        for i in range(part.size):
            bits = np.int32(part[i] & np.int32(UNSIGNED))
            largest = bits if bits > largest else largest
        result[b] = largest if largest < INFINITE else NAN


@numba.njit(fastmath=FLAGS, error_model="numpy")
def quantise(values, bucket, scales, most, seed, codes):
    """The level of each value, where `most` is its bucket's scale: twice that, plus a sign bit.

    It is rounded up as often as it is near the level above, so its mean is right: unbiased (QSGD,
    Alistarh and others 2017, section 3.1). A `seed` of 0 rounds to the nearest level instead.
    """
    for b in range(scales.size):
        part, out = values[b * bucket : (b + 1) * bucket], codes[b * bucket : (b + 1) * bucket]
        up = np.float32(most) / scales[b] if scales[b] > 0 else np.float32(0)
        for i in range(part.size):
            chance = uniform(b * bucket + i, seed) if seed else np.float32(0.5)
            level = min(np.int32(abs(part[i]) * up + chance), np.int32(most))
            out[i] = 2 * level + np.int32(part[i] < 0)


@numba.njit(fastmath=FLAGS, error_model="numpy")
def dequantise(codes, bucket, scales, most, values):
    """The values (n) that levels stand for. A bucket whose scale is NaN becomes NaN."""
    for b in range(scales.size):
        part, out = codes[b * bucket : (b + 1) * bucket], values[b * bucket : (b + 1) * bucket]
        unit = scales[b] / np.float32(most)
        for i in range(out.size):
            code = np.int32(part[i])
            out[i] = np.float32((code >> 1) * (1 - 2 * (code & 1))) * unit


@numba.njit
def pack(codes, bits, packed):
    """Several codes of so many bits in each byte of `packed` (m): byte i has codes i, i + m, …"""
    m = packed.size
    packed[:] = codes[:m]
    for k in range(1, 8 // bits):
        shift, row = np.uint8(k * bits), codes[k * m : (k + 1) * m]
        for i in range(m):
            packed[i] |= row[i] << shift


@numba.njit
def unpack(packed, bits, codes):
    """What `pack` has packed."""
    m, mask = packed.size, np.uint8((1 << bits) - 1)
    for k in range(8 // bits):
        shift, row = np.uint8(k * bits), codes[k * m : (k + 1) * m]
        for i in range(m):
            row[i] = (packed[i] >> shift) & mask
