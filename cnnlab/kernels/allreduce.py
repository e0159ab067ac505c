"""Allreduce in memory that a team shares, threads or ranks of one machine; and its barrier.

Starting threads or sending a message takes longer than a barrier at which running threads watch a
counter. Numba has no atomic operations for the CPU, so they are written here in LLVM's terms.
"""

import ctypes
import functools
import sys
from typing import NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LINE = 8  # int64 numbers in a cache line: counters that different workers watch lie apart
ROLL, BARRIER, N_COUNTS = 0, LINE, 3 * LINE  # where in `counts`, and its length
OFF = 1 << 32  # on the roll: more than any team has members
PATIENCE = 100  # looks at a counter before a worker yields its core
WINDOWS = sys.platform == "win32"
ROLL_CALL = 3000 if WINDOWS else 3  # milliseconds, or seconds, before the roll call fails

let_others_run = types.ExternalFunction(
    "SwitchToThread" if WINDOWS else "sched_yield", types.intc()
)
# Called with 0: C's is told to store nothing, and the other takes no argument.
clock = types.ExternalFunction("GetTickCount64" if WINDOWS else "time", types.int64(types.intp))


class Team(NamedTuple):
    """The memory of a team, as one member sees it.

    `parts` (size,M or more) has a row for the gradients of each member; all read them. `total` (M)
    is this member's own. `counts` are the counters of `all_running` and `barrier`.
    """

    size: int
    parts: np.ndarray
    total: np.ndarray
    counts: np.ndarray


def row(n: int) -> int:
    """The length of a row for n float32: whole cache lines, and a gap before the next row.

    Prefetching beyond a row's end would take the next row's lines from the core that writes them.
    """
    return -(-n // 16) * 16 + 512


def counts() -> np.ndarray:
    """The counters of a team, all zero, on cache lines of their own."""
    return np.zeros(LINE + N_COUNTS, np.int64)[LINE:]


@numba.njit
def sum_in_memory(grads, team):
    """The sum of the members' gradients; `grads` (M) are in this member's row of `team.parts`.

    All add up all rows in one order, so they get the same bits. Each row has one writer.
    """
    if team is None:
        return grads
    barrier(team)
    add_up(team.parts, team.total)
    barrier(team)
    return team.total


@numba.njit
def add_up(parts, total):
    """Add up rows of gradients (T,M or more) in their order → total (M)."""
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
def all_running(team):
    """Whether all members run at the same time: only then may they wait at a barrier.

    A parallel loop may run members one after the other. All get one answer; ask before a barrier.
    """
    roll = team.counts[ROLL:].ctypes.data
    add(roll, 1)
    present, end = read(roll), clock(0) + ROLL_CALL
    while present < team.size and clock(0) < end:
        let_others_run()
        present = read(roll)
    while present < team.size:
        swap(roll, present, OFF)
        present = read(roll)
    return present < OFF


@intrinsic
def add(typing, address, number):
    """Atomic add to the int64 at an address; returns the previous value."""

    def code(context, builder, signature, values):
        return builder.atomic_rmw("add", _pointer(builder, values[0]), values[1], "acq_rel")

    return types.int64(types.int64, types.int64), code


@intrinsic
def read(typing, address):
    """Atomic load of the int64 at an address; sees all that was written before it was."""

    def code(context, builder, signature, values):
        return builder.load_atomic(_pointer(builder, values[0]), "acquire", 8)

    return types.int64(types.int64), code


@intrinsic
def swap(typing, address, expected, number):
    """Atomic compare-and-swap of the int64 at an address; returns the previous value."""

    def code(context, builder, signature, values):
        pointer = _pointer(builder, values[0])
        pair = builder.cmpxchg(pointer, values[1], values[2], "acq_rel", "acquire")
        return builder.extract_value(pair, 0)

    return types.int64(types.int64, types.int64, types.int64), code


def _pointer(builder, address):
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


# --- MPI's allreduce, called by compiled kernels, so that no Python runs between two steps --------


class Messages(NamedTuple):
    """What MPI_Allreduce needs to sum float32 in place, over the ranks of a communicator."""

    function: int
    in_place: int
    float32: int
    plus: int
    communicator: int


@functools.cache
def library() -> ctypes.CDLL:
    """The library in which MPI's functions are looked up: mpi4py, and so what it is linked to.

    Windows looks no further than mpi4py itself, see `reachable`.
    """
    from mpi4py import MPI

    return ctypes.CDLL(MPI.__file__)


def reachable() -> bool:
    """Whether MPI's functions are found by their names; if not, Python has to send the messages."""
    return hasattr(library(), "MPI_Allreduce")


def messages(comm) -> Messages:
    """Messages between the ranks of a communicator."""
    from mpi4py import MPI

    function = ctypes.cast(library().MPI_Allreduce, ctypes.c_void_p).value
    handles = (MPI._handleof(item) for item in (MPI.FLOAT, MPI.SUM, comm))
    return Messages(function, int(MPI.IN_PLACE), *handles)


@numba.njit
def sum_by_mpi(grads, messages):
    """The sum over all ranks of their gradients (M), in place. Raises RuntimeError if MPI fails."""
    if messages is None:
        return grads
    buffers = messages.in_place, grads.ctypes.data
    operation = grads.size, messages.float32, messages.plus, messages.communicator
    if call(messages.function, buffers + operation) != 0:
        raise RuntimeError("MPI_Allreduce: the gradients could not be added up over the ranks")
    return grads


@intrinsic
def call(typing, address, arguments):
    """Call the C function at an address with integers and pointers; returns its int."""

    def code(context, builder, signature, values):
        word = ir.IntType(64)
        words = [
            context.cast(builder, builder.extract_value(values[1], i), kind, types.int64)
            for i, kind in enumerate(signature.args[1])
        ]
        function = ir.FunctionType(ir.IntType(32), [word] * len(words)).as_pointer()
        return builder.call(builder.inttoptr(values[0], function), words)

    return types.int32(types.int64, arguments), code
