"""What launches move between DRAM and the GPU: the distinct sectors, and a model of its cache.

Both go by the sectors of 32 bytes of its arguments that each block touches, however often.
"""

from collections.abc import Sequence

import numba
import numpy as np

from cnnlab.cuda.emulator.faults import WRITE
from cnnlab.cuda.emulator.memory import SECTOR
from cnnlab.cuda.emulator.trace import Trace

FETCH = 4  # the block reads the sector before it writes there


def distinct(traces: Sequence[Trace]) -> int:
    """The bytes of all sectors that the launches touch, each once: a cache without a limit."""
    return SECTOR * int(np.count_nonzero(np.bincount(_numbered(traces))))


def dram(traces: Sequence[Trace], size: int) -> np.ndarray:
    """The bytes that each launch reads from DRAM and those that it has written back: (launches,2).

    A model of one L2 of `size` bytes that all launches share: it is empty at first and holds single
    sectors, any of them anywhere; who comes drives out the one used least recently. Blocks run one
    after the other, in their order. A read that misses is fetched; a write, be it of a part of a
    sector, is not. Sectors that were written go back to DRAM when driven out, or at the end; they
    count for the launch that wrote them last.
    """
    launches = np.repeat(np.arange(len(traces)), [len(trace.touched) for trace in traces])
    flags = np.concatenate([trace.touched[:, 1] for trace in traces])
    moved = np.zeros((len(traces), 2), np.int64)
    _least_recently_used(_numbered(traces), flags, launches, size // SECTOR, moved)
    return SECTOR * moved


def _numbered(traces: Sequence[Trace]) -> np.ndarray:
    """The sector of each touch, by numbers that leave out what lies between the arrays."""
    arrays = [array for trace in traces for array in trace.arrays if not array.shared]
    spans = ((a.start // SECTOR, (a.start + a.size * a.item) // SECTOR + 1) for a in arrays)
    first, end = np.array(sorted(spans), np.int64).reshape(-1, 2).T
    gaps = np.maximum(first - np.maximum.accumulate(np.append(0, end[:-1])), 0)
    sectors = np.concatenate([trace.touched[:, 0] for trace in traces])
    return sectors - np.cumsum(gaps)[np.searchsorted(first, sectors, "right") - 1]


@numba.njit
def _least_recently_used(sectors, flags, launches, room, moved):
    """Add to `moved`, launch by launch, the sectors that a cache of `room` reads and writes."""
    n_sectors = sectors.max() + 1 if len(sectors) else 0
    used = np.full(n_sectors, -1)  # the latest touch of each sector that is held
    writer = np.full(n_sectors, -1)  # the launch whose values of it DRAM lacks
    held = oldest = 0
    for touch, sector in enumerate(sectors):
        if used[sector] < 0:
            moved[launches[touch], 0] += flags[touch] & FETCH > 0
            held += 1
        used[sector] = touch
        if flags[touch] & WRITE:
            writer[sector] = launches[touch]
        if held > room:
            while used[sectors[oldest]] != oldest:
                oldest += 1  # was used again later, or is gone
            out = sectors[oldest]
            moved[writer[out], 1] += writer[out] >= 0
            used[out] = writer[out] = -1
            held -= 1
    for last in writer:
        moved[last, 1] += last >= 0
