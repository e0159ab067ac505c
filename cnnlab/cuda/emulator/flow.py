"""Which launch needs what another has left: the arrays that launches pass on, from their traces."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cnnlab.cuda.emulator.faults import ATOMIC, WRITE
from cnnlab.cuda.emulator.trace import Trace


class Passed(NamedTuple):
    """An array on its way from one launch to a later one, both by number.

    `array` is its name in the kernel that writes it; `bytes` counts what is read, each once.
    """

    giver: int
    taker: int
    array: str
    bytes: int


def passed_on(traces: Sequence[Trace]) -> list[Passed]:
    """What each launch reads that an earlier one wrote last, element by element.

    Of traces that are samples, only what the blocks in both of them touch.
    """
    found: list[Passed] = []
    left: list[tuple[int, str, int, np.ndarray]] = []  # a launch, its array, bytes of an element
    for taker, trace in enumerate(traces):
        written = []
        for number, array in enumerate(trace.arrays):
            mine = trace.array == number
            if array.shared or not mine.any():
                continue
            flags = trace.flags[mine]
            places, first = np.unique(trace.index[mine], return_index=True)
            needed = array.start + array.item * places[flags[first] & (WRITE | ATOMIC) != WRITE]
            for giver, name, item, those in left:
                if n := len(np.intersect1d(needed, those, assume_unique=True)):
                    found.append(Passed(giver, taker, name, item * n))
            if array.const or not (flags & WRITE).any():
                continue
            places = np.unique(trace.index[mine][flags & WRITE > 0])
            written.append((taker, array.name, array.item, array.start + array.item * places))
        new = np.concatenate([np.empty(0, np.int64), *(those for *_, those in written)])
        left = [(*who, np.setdiff1d(those, new)) for *who, those in left] + written
    return found


def levels(n_launches: int, passed: Sequence[Passed]) -> list[int]:
    """How many launches stand before each, one needing the other: 0 if it needs none.

    Launches of one level do not need each other, so they may run side by side.
    """
    found = [0] * n_launches
    for one in sorted(passed, key=lambda one: one.taker):
        found[one.taker] = max(found[one.taker], 1 + found[one.giver])
    return found
