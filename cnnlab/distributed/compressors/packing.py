"""Numbers in fewer bits: levels of a bucket's scale, rounded by chance, and packed into bytes."""

import numba
import numpy as np

BUCKET = 512  # numbers that share a scale
# The bits of these, and a mask that takes the sign off.
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
    found = scales.view(np.int32)
    for b in range(scales.size):
        part, largest = values[b * bucket : (b + 1) * bucket].view(np.int32), np.int32(0)
        for i in range(part.size):
            bits = np.int32(part[i] & np.int32(UNSIGNED))
            largest = bits if bits > largest else largest
        found[b] = largest if largest < INFINITE else NAN


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
