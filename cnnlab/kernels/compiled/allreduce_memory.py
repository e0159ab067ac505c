"""A team of workers that share memory, threads or ranks of one machine: barrier and allreduce.

A step takes a fifth of a millisecond. To start threads anew for each, or to send a message, takes
a twentieth of that; a barrier whose threads look at a counter until all have come takes 0.2 µs.
Numba has no atomic operations for processors: they are written here in LLVM's terms.
"""

import sys
from typing import NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LINE = 8  # int64 numbers in a cache line, so that those who wait for one do not slow another
ROLL, BARRIER, N_COUNTS = 0, LINE, 3 * LINE  # where in `counts`, and how many it has
OFF = 1 << 32  # on the roll: more than any team has members
PATIENCE = 1000  # looks at a counter before a worker lets others have its core
ROLL_CALLS = 1_000_000  # so often it does before it gives up hope that all are running: a second

let_others_run = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.intc()
)


class Team(NamedTuple):
    """What a worker needs to know of its team.

    In `parts` (size,M) each member has a row for its gradients, for all to see; `total` (M) is this
    member's own; `counts` are those of `all_here` and `barrier`.
    """

    member: int
    size: int
    parts: np.ndarray
    total: np.ndarray
    counts: np.ndarray


def row(n: int) -> int:
    """How long a row for n float32 should be, in whole cache lines and with a gap to the next.

    A processor reads ahead, beyond the end of an array, and would take from another core what it
    finds there.
    """
    return -(-n // 16) * 16 + 512


def counts() -> np.ndarray:
    """Counts for a team, all zero, with cache lines to themselves."""
    return np.zeros(LINE + N_COUNTS, np.int64)[LINE:]


@numba.njit
def share(chosen, team):
    """This member's block of a batch (N): whole sixteens where there are enough for all."""
    if team is None:
        return chosen
    unit = 16 if chosen.size >= 16 * team.size else 1
    units = (chosen.size + unit - 1) // unit
    first, last = units * team.member // team.size, units * (team.member + 1) // team.size
    return chosen[first * unit : last * unit]


@numba.njit
def allreduce(step, team):
    """The sum of the members' gradients, of which `step` (M) is this one's part: see `Team`.

    In the order of the members, so that all get the same bits. To read what another core wrote is
    fast, and done by all at once; to write where another has read would be slow.
    """
    if team is None:
        return step
    barrier(team)
    add_up(team.parts, team.total)
    barrier(team)
    return team.total


@numba.njit
def add_up(parts, total):
    """Add up gradients (T,M), in their order, as many numbers as `total` has."""
    for i in range(total.size):
        total[i] = parts[0, i]
    for t in range(1, len(parts)):
        for i in range(total.size):
            total[i] += parts[t, i]


@numba.njit
def barrier(team):
    """Wait until all members are here; what they wrote before, all can read after."""
    count = team.counts[BARRIER:].ctypes.data
    all_of_them = (add(count, 1) // team.size + 1) * team.size
    looks = 0
    while read(count) < all_of_them:
        looks += 1
        if looks > PATIENCE:
            let_others_run()


@numba.njit
def all_here(team):
    """Whether all members are running at the same time: only then may they wait for each other.

    Some ways to run a parallel loop have one thread do several turns, one after the other. All
    members get the same answer, and must ask before the first barrier.
    """
    roll = team.counts[ROLL:].ctypes.data
    add(roll, 1)
    for _ in range(ROLL_CALLS):
        present = read(roll)
        if present >= team.size:
            return present < OFF
        let_others_run()
    while present < team.size:
        swap(roll, present, OFF)
        present = read(roll)
    return present < OFF


@intrinsic
def add(typing, address, number):
    """Add to the int64 at an address, as one operation that no other can come between; what was."""

    def code(context, builder, signature, values):
        return builder.atomic_rmw("add", _pointer(builder, values[0]), values[1], "acq_rel")

    return types.int64(types.int64, types.int64), code


@intrinsic
def read(typing, address):
    """The int64 at an address, and sight of what was written before it was."""

    def code(context, builder, signature, values):
        return builder.load_atomic(_pointer(builder, values[0]), "acquire", 8)

    return types.int64(types.int64), code


@intrinsic
def swap(typing, address, expected, number):
    """Write a number to the address unless another than the expected is there; what was."""

    def code(context, builder, signature, values):
        pointer = _pointer(builder, values[0])
        pair = builder.cmpxchg(pointer, values[1], values[2], "acq_rel", "acquire")
        return builder.extract_value(pair, 0)

    return types.int64(types.int64, types.int64, types.int64), code


def _pointer(builder, address):
    return builder.inttoptr(address, ir.IntType(64).as_pointer())
