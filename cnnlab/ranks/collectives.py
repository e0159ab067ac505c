"""Collective operations, written with MPI's send and receive alone."""

import numpy as np

from cnnlab.ranks.schedules import NOBODY, SCHEDULES
from cnnlab.runtime.arguments import one_of

TAG = 77  # keeps these messages apart from the caller's


def broadcast(comm, array: np.ndarray, root: int = 0) -> None:
    """Copy the root's array to every rank, in place, along a binomial tree: log2(P) rounds."""
    relative = (comm.rank - root) % comm.size  # 0 on the root
    distance = 1
    while distance < comm.size:
        if relative < distance and relative + distance < comm.size:
            comm.Send(array, (comm.rank + distance) % comm.size, TAG)
        elif distance <= relative < 2 * distance:
            comm.Recv(array, (comm.rank - distance) % comm.size, TAG)
        distance *= 2


def allreduce(comm, array: np.ndarray, schedule: str = "ring") -> None:
    """Replace `array` on every rank by its sum over all ranks, in place.

    `array` is C-contiguous float32 or float64, of the same shape on all ranks; `comm` is an
    `mpi4py.MPI.Comm`. The result has the same bits on every rank and in every run. Raises, before
    anything is sent, ValueError for an unknown schedule or an array that is not C-contiguous and
    writeable, TypeError for any other kind of array.
    """
    one_of("schedule", schedule, SCHEDULES)
    if not isinstance(array, np.ndarray) or array.dtype not in (np.float32, np.float64):
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"array: expected a NumPy array of float32 or float64, got {kind}")
    if not (array.flags.c_contiguous and array.flags.writeable):
        got = "a read-only array" if array.flags.c_contiguous else f"strides {array.strides}"
        raise ValueError(f"array: expected a C-contiguous, writeable array, got {got}")
    perform(comm, array.reshape(-1), SCHEDULES[schedule](comm.rank, comm.size, array.size))


def perform(comm, flat: np.ndarray, steps) -> None:
    """Carry out one rank's steps of a schedule on its elements, in place."""
    received = np.empty_like(flat)
    for to, a, b, source, c, d, add in steps:
        into = received[c:d] if add else flat[c:d]
        exchange(comm, flat[a:b], to if a < b else NOBODY, into, source if c < d else NOBODY)
        if source != NOBODY and add:
            flat[c:d] += into


def exchange(comm, sent: np.ndarray, to: int, received: np.ndarray, source: int) -> None:
    """Send one array and receive another at the same time, unless it is from or to NOBODY."""
    if to != NOBODY and source != NOBODY:
        comm.Sendrecv(sent, to, TAG, received, source, TAG)
    elif to != NOBODY:
        comm.Send(sent, to, TAG)
    elif source != NOBODY:
        comm.Recv(received, source, TAG)
