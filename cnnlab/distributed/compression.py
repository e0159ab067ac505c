"""Sums over ranks with fewer bytes: they send what a compressor makes of their gradients."""

from collections.abc import Callable

import numpy as np

from cnnlab.distributed.compressors import compressor
from cnnlab.ranks import sparse
from cnnlab.ranks.collectives import TAG


class CompressedSum:
    """Adds up gradients over the ranks in two rounds of short messages.

    The gradient has a shard for each rank. In the first round every rank sends each shard,
    compressed, to its owner, who adds up what the messages stand for. In the second the owner sends
    the sum, compressed, to all. So all ranks have the same bits. Where compressors keep a
    residual, a sender has one for each shard, and an owner one for its sum (Seide and others 2014).
    `make` is a function of (n, seed) that makes a compressor, whose messages have one length.
    """

    def __init__(self, comm, make: Callable):
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.make, self.compressors = make, []  # those of this rank, that of the sum last

    def add_up(self, flat: np.ndarray, n_images: int = 1) -> None:
        """Replace float32 (n) by about the sum over all ranks: the same on each of them.

        How many images gradients are summed over makes no difference.
        """
        if self.size == 1:
            return
        shards = np.zeros((self.size, -(-flat.size // self.size)), np.float32)
        shards.reshape(-1)[: flat.size] = flat
        if not self.compressors or self.compressors[-1].n != len(shards[0]):
            self.begin(flat.size)
        *up, down = self.compressors
        sent = np.stack([one.encode(part) for one, part in zip(up, shards, strict=True)])
        received, total, part = np.empty_like(sent), *np.zeros((2, len(shards[0])), np.float32)
        to_each(self.comm, sent, received)
        for message in received:
            up[0].decode(message, part)
            total += part
        sums = np.empty((self.size, down.n_bytes), np.uint8)
        to_each(self.comm, [down.encode(total)] * self.size, sums)
        for message, part in zip(sums, shards, strict=True):
            down.decode(message, part)
        flat[:] = shards.reshape(-1)[: flat.size]

    def begin(self, n: int) -> None:
        """Make the compressors for n numbers: one for each shard that is sent, one for the sum."""
        seeds = self.rank * (self.size + 1) + np.arange(self.size + 1)
        *up, last = [self.make(-(-n // self.size), int(seed)) for seed in seeds]
        self.compressors = [*up, last.of_sum()]


def to_each(comm, sent, received: np.ndarray) -> None:
    """Row r of `sent` to rank r, and row r of `received` from there: in pairs, P − 1 rounds."""
    received[comm.rank] = sent[comm.rank]
    for k in range(1, comm.size):
        to, source = (comm.rank + k) % comm.size, (comm.rank - k) % comm.size
        comm.Sendrecv(sent[to], to, TAG, received[source], source, TAG)


class StreamSum:
    """Adds up what each rank has chosen of its gradient, by a sparse allreduce.

    The sum is that of the streams, exactly, so that what a rank does not send is owed by it alone.
    """

    def __init__(self, comm, make: Callable):
        self.comm, self.make, self.compressors = comm, make, []  # the one of this rank

    def add_up(self, flat: np.ndarray, n_images: int = 1) -> None:
        """Replace float32 (n) by the sum of what all ranks chose: the same on each of them.

        `n_images` is the batch of all ranks, over which gradients are summed.
        """
        if not self.compressors or self.compressors[0].n != flat.size:
            self.begin(flat.size)
        places, values = self.compressors[0].choose(flat, n_images, self.comm.size)
        sparse.allreduce(self.comm, places, values, flat)

    def begin(self, n: int) -> None:
        """Make the compressor for n numbers."""
        self.compressors = [self.make(n, self.comm.rank)]


def summing(comm, compress: str) -> CompressedSum | StreamSum:
    """What adds up gradients: `compress` names one of COMPRESSORS, as "qsgd4" does."""
    make = compressor(compress)
    return (StreamSum if make(1).streams else CompressedSum)(comm, make)


# --- what the compressors of all ranks keep from sum to sum ---------------------------------------

Sum = CompressedSum | StreamSum  # or the parcels of a server
Kept = dict[str, np.ndarray]
MESSAGES = "messages of compressors"  # that each has sent: chances come from it, and densities


def own(group: Sum) -> dict[str, list[np.ndarray]]:
    """What this rank's compressors keep, by its name in a checkpoint."""
    result: dict[str, list[np.ndarray]] = {}
    for one in group.compressors:
        for name, array in one.state.items():
            result.setdefault(f"{name} of ranks", []).append(array)
    return result


def room(group: Sum | None, n: int) -> Kept:
    """Make the compressors for gradients of n numbers; zeros for what those of P ranks keep.

    By name, arrays (P, K, …) for K compressors of a rank; none where compressors keep nothing.
    """
    if not group:
        return {}
    group.begin(n)
    kept = {
        name: np.zeros((group.comm.size, *np.shape(arrays)), arrays[0].dtype)
        for name, arrays in own(group).items()
    }
    if kept or any(one.by_chance for one in group.compressors):
        kept[MESSAGES] = np.zeros(group.comm.size)
    return kept


def load(group: Sum | None, kept: Kept) -> None:
    """Go on from there; `kept` has been made by `room`, or is empty."""
    if not kept:
        return
    for one in group.compressors:
        one.n_messages = int(kept[MESSAGES][group.comm.rank])
    for name, arrays in own(group).items():
        for array, value in zip(arrays, kept[name][group.comm.rank], strict=True):
            array[...] = value


def store(group: Sum | None, kept: Kept) -> None:
    """Bring what all ranks keep to each of them; all call this."""
    if kept:
        for name, arrays in own(group).items():
            kept[name][:] = group.comm.allgather(np.stack(arrays))
        kept[MESSAGES][:] = group.comm.allgather(group.compressors[0].n_messages)
