"""Fewer numbers: only the largest are sent, with their places."""

import numba
import numpy as np

from cnnlab.distributed.compressors.base import BUCKET, UNSIGNED, Compressor
from cnnlab.distributed.compressors.bits import Qsgd

FEW = 256  # numbers that are sorted faster than counted
WIDEST = 32  # where fewer than one number in so many is chosen, a look at groups pays


@numba.njit
def kth_largest(values, k):
    """The bits of the k-th largest absolute value, and how many of the k are equal to it.

    A radix select: without its sign, a larger float32 has larger bits, so three passes count digits
    of 11, 10 and 10 bits. NaN is the largest. A few numbers are sorted instead.
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
        part, result = bits[g * width : (g + 1) * width], np.int32(0)
        for i in range(width):
            size = part[i] & np.int32(UNSIGNED)
            result = size if size > result else result
        largest[g] = result
    return kth_largest(largest.view(np.float32), k)[0]


@numba.njit
def select(values, places, chosen):
    """The k largest of `values` by absolute value and their places, in order; of equals the first.

    places int32 (k), chosen float32 (k). Few of many are looked for among those that reach what k
    of them surely do.
    """
    k, result = places.size, 0
    if k == 0:
        return
    least = surely(values, k) if values.size >= WIDEST * k else np.int32(0)
    among, bits = np.empty(values.size, np.int32), values.view(np.int32)
    for i in range(values.size):
        if bits[i] & np.int32(UNSIGNED) >= least:
            among[result] = i
            result += 1
    left = values[among[:result]]
    least, ties = kth_largest(left, k)
    bits, n = left.view(np.int32), 0
    for i in range(result):
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
        self.n_bytes = 8 * self.k  # places of 4 bytes, then the numbers

    def pack(self, values: np.ndarray) -> np.ndarray:
        message = np.empty(self.n_bytes, np.uint8)
        select(values, *self.parts(message))
        return message

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        places, chosen = self.parts(message)
        values[:] = 0
        values[places] = chosen

    def parts(self, message: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places and the numbers of a message."""
        return message[: 4 * self.k].view(np.int32), message[4 * self.k :].view(np.float32)


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
        kept = np.minimum(np.bincount(np.arange(n) // BUCKET), self.k)  # of each bucket
        self.starts = np.repeat(BUCKET * np.arange(kept.size), kept)  # of each place's bucket
        self.places = np.empty(self.starts.size, np.int32)
        self.chosen = np.empty(self.starts.size, np.float32)
        self.levels = Qsgd(self.starts.size, seed, 4, bucket=self.k)
        self.n_bytes = self.levels.n_bytes + 2 * self.places.size  # scales, levels, then places

    def pack(self, values: np.ndarray) -> np.ndarray:
        select_in_buckets(values, BUCKET, self.k, self.places, self.chosen)
        self.levels.n_messages = self.n_messages - 1  # which a checkpoint keeps
        levels = self.levels.encode(self.chosen)
        return np.concatenate([levels, self.places.astype(np.uint16).view(np.uint8)])

    def decode(self, message: np.ndarray, values: np.ndarray) -> None:
        split = self.levels.n_bytes
        self.levels.decode(message[:split], self.chosen)
        values[:] = 0
        values[self.starts + message[split:].view(np.uint16)] = self.chosen

    def of_sum(self) -> Compressor:
        return Qsgd(self.n, self.seed, 4)


Stream = tuple[np.ndarray, np.ndarray]


class Streams(TopK):
    """The largest numbers and their places; sums of them are exact, and not compressed again.

    TopK SGD (Renggli and others 2019).
    """

    streams = True

    def choose(self, gradient: np.ndarray, n_images: int, n_ranks: int) -> Stream:
        """Places, int32 (k), ascending, and float32 (k) to send; the rest stays in `residual`.

        gradient float32 (n), summed over this rank's share of `n_images`, which `n_ranks` share.
        """
        self.n_messages += 1
        self.residual += gradient
        places, values = largest(self.residual, self.k)
        self.residual[places] = 0
        return places, values


def largest(values: np.ndarray, k: int) -> Stream:
    """The places, int32 (k), ascending, and the values of the k largest by absolute value."""
    places, chosen = np.empty(k, np.int32), np.empty(k, np.float32)
    select(values, places, chosen)
    return places, chosen


class DeepGradientCompression(Streams):
    """Top-k with error feedback of velocities instead of gradients; train it with plain sgd.

    Lin and others 2018, section 3: each rank clips its gradient, adds it to a velocity of its own,
    and this to what is owed, the `residual`. What is sent is zeroed in both: a velocity that went
    on would push again where its push has arrived (momentum factor masking). `argument` is a
    density, or a density and the messages of a stage of its warm-up, as "0.01,50": of the first 50
    a quarter of the numbers are sent, of the next 50 a sixteenth, and so on down to the density.
    A gradient is clipped where its norm, for the mean over all images, is above clip / √n_ranks.
    """

    def __init__(self, n, seed=0, argument=0.01, momentum=0.9, clip: float = 2.0):
        density, comma, stage = str(argument).partition(",")
        if comma and not stage.isdecimal():
            raise ValueError(f"compress: expected messages of a stage after the comma, got {stage}")
        super().__init__(n, seed, density)
        self.stage, self.momentum, self.clip = int(stage or 0), momentum, clip
        self.velocity = np.zeros(n, np.float32)
        self.state["velocity"] = self.velocity

    def choose(self, gradient: np.ndarray, n_images: int, n_ranks: int) -> Stream:
        """Places, int32 (k), ascending, and the velocities added up there, float32 (k).

        gradient float32 (n), summed over this rank's share of `n_images`, which `n_ranks` share.
        """
        k = self.places_to_send()
        self.n_messages += 1
        self.velocity *= self.momentum
        self.velocity += self.clipped(gradient, n_images, n_ranks)
        self.residual += self.velocity
        places, values = largest(self.residual, k)
        self.residual[places] = 0
        self.velocity[places] = 0
        return places, values

    def places_to_send(self) -> int:
        """How many numbers the next message has: fewer from stage to stage of the warm-up."""
        if not self.stage:
            return self.k
        warm = round(self.n * 0.25 ** (1 + self.n_messages // self.stage))
        return min(self.n, max(self.k, warm))

    def clipped(self, gradient: np.ndarray, n_images: int, n_ranks: int) -> np.ndarray:
        """The gradient, no longer than one rank's part of the longest that is let through.

        The sum of n independent ones is longer by √n, so each is shorter by as much.
        """
        most, norm = self.clip * n_images / n_ranks**0.5, float(np.linalg.norm(gradient))
        return gradient if norm <= most else gradient * np.float32(most / norm)
