"""Fewer numbers: only the largest are sent, with their places."""

import numba
import numpy as np

from cnnlab.distributed.compressors.base import Compressor

UNSIGNED = 0x7FFFFFFF  # a mask that takes the sign off
FEW = 256  # numbers that are sorted faster than counted
WIDEST = 32  # where fewer than one number in so many is chosen, a look at groups pays


@numba.njit
def kth_largest(values, k):
    """The bits of the k-th largest absolute value, and how many of the k are equal to it.

    A radix select: without its sign, a larger float32 has larger bits, so three passes count how
    often each digit occurs, 11 bits of it, 10 and 10. NaN counts as the largest of all. A few
    numbers are sorted instead.
    """
    if values.size <= FEW:
        bits = np.sort(values.view(np.int32) & np.int32(UNSIGNED))
        least = bits[bits.size - k]
        return least, k - (bits > least).sum()
    prefix, wanted = np.int32(0), k
    for shift, width in ((20, 11), (10, 10), (0, 10)):
        counts, mask = np.zeros(1 << width, np.int32), (1 << width) - 1
        for bits in values.view(np.int32):
            if (bits & UNSIGNED) >> (shift + width) == prefix:
                counts[((bits & UNSIGNED) >> shift) & mask] += 1
        digit = mask
        while counts[digit] < wanted:
            wanted -= counts[digit]
            digit -= 1
        prefix = np.int32(prefix << width | digit)
    return prefix, wanted


@numba.njit
def surely(values, k):
    """Bits that at least k of the values reach, and as a rule not many more.

    Cut into 2 k groups, k of which have a largest value of at least this one.
    """
    width, bits = values.size // (2 * k), values.view(np.int32)
    largest = np.empty(2 * k, np.int32)
    for g in range(2 * k):
        part, found = bits[g * width : (g + 1) * width], np.int32(0)
        for i in range(width):
            size = part[i] & np.int32(UNSIGNED)
            found = size if size > found else found
        largest[g] = found
    return kth_largest(largest.view(np.float32), k)[0]


@numba.njit
def select(values, places, chosen):
    """The k largest of `values` by absolute value and their places, in order; of equals the first.

    places int32 (k), chosen float32 (k). Few of many are looked for among those that reach what k
    of them surely do.
    """
    k, found = places.size, 0
    if k == 0:
        return
    least = surely(values, k) if values.size >= WIDEST * k else np.int32(0)
    among, bits = np.empty(values.size, np.int32), values.view(np.int32)
    for i in range(values.size):
        if bits[i] & np.int32(UNSIGNED) >= least:
            among[found] = i
            found += 1
    left = values[among[:found]]
    least, ties = kth_largest(left, k)
    bits, n = left.view(np.int32), 0
    for i in range(found):
        size = bits[i] & np.int32(UNSIGNED)
        if size > least or (size == least and ties > 0):
            ties -= size == least
            places[n], chosen[n] = among[i], left[i]
            n += 1


class TopK(Compressor):
    """The largest of n numbers, a share `density` of them, at least one; the rest later.

    Aji and Heafield 2017, section 3: what is not sent stays in the residual.
    """

    feedback = True

    def __init__(self, n: int, seed: int = 0, argument: object = 0.01):
        try:
            density = float(argument)
        except ValueError:
            density = 0.0
        if not 0 < density <= 1:
            raise ValueError(f"compress: expected a density from 0 to 1, got {argument}")
        super().__init__(n, seed)
        self.k = min(n, max(1, round(density * n)))

    @property
    def n_bytes(self) -> int:
        """The length of every message: places of 4 bytes, then the numbers."""
        return 8 * self.k

    def pack(self, values: np.ndarray) -> np.ndarray:
        """The message for these values alone."""
        message = np.empty(self.n_bytes, np.uint8)
        select(values, *self.parts(message))
        return message

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        """Write what a message stands for to `values` (n): zero where nothing was sent."""
        places, chosen = self.parts(message)
        values[:] = 0
        values[places] = chosen

    def parts(self, message: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places and the numbers of a message."""
        return message[: 4 * self.k].view(np.int32), message[4 * self.k :].view(np.float32)
