"""Who sends how many bytes to whom: matrices (P,P), from row to column."""

from collections.abc import Sequence

import numpy as np

from cnnlab.distributed.model import Range, length, overlap
from cnnlab.ranks.schedules import NOBODY, SCHEDULES
from cnnlab.ranks.virtual.calls import LARGE


def allreduce(size: int, n: int) -> list[np.ndarray]:
    """The bytes (P,P) of each round of an allreduce of n float32."""
    schedule = SCHEDULES["rabenseifner" if 4 * n >= LARGE else "butterfly"]
    programs = [schedule(rank, size, n) for rank in range(size)]
    found = [nothing(size)]
    for steps in zip(*programs, strict=True):
        found.append(nothing(size))
        for rank, step in enumerate(steps):
            if step.to != NOBODY:
                found[-1][rank, step.to] = 4 * (step.b - step.a)
    return found


def around(n_bytes: Sequence[int]) -> list[np.ndarray]:
    """The bytes (P,P) of each round in which the blocks of all ranks, so long, go around a ring."""
    size, ranks = len(n_bytes), np.arange(len(n_bytes))
    found = []
    for k in range(size - 1):
        found.append(nothing(size))
        found[-1][ranks, (ranks + 1) % size] = np.roll(n_bytes, k)
    return found


def pieces(owned: Sequence[Range], needed: Sequence[Range], n_bytes: int) -> np.ndarray:
    """The bytes (P,P) that bring every rank what it needs of ranges that others own."""
    size, sent = len(owned), nothing(len(owned))
    if all(a == b or not (length(a) or length(b)) for a, b in zip(owned, needed, strict=True)):
        return sent
    for a in range(size):
        for b in set(range(size)) - {a}:
            sent[a, b] = n_bytes * length(overlap(owned[a], needed[b]))
    return sent


def nothing(size: int) -> np.ndarray:
    """Zero bytes between any two ranks."""
    return np.zeros((size, size), np.int64)
