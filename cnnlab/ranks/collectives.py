"""Collective operations by hand, from MPI's send and receive alone."""

import numpy as np

from cnnlab.ranks.schedules import NOBODY, SCHEDULES

TAG = 77  # messages of ours are told apart from those of the caller


def broadcast(comm, array: np.ndarray, root: int = 0) -> None:
    """Copy the root's array to all ranks, in place, along a binomial tree: log2(P) rounds."""
    mine = (comm.rank - root) % comm.size  # as if the root were rank 0
    distance = 1
    while distance < comm.size:
        if mine < distance and mine + distance < comm.size:
            comm.Send(array, (comm.rank + distance) % comm.size, TAG)
        elif distance <= mine < 2 * distance:
            comm.Recv(array, (comm.rank - distance) % comm.size, TAG)
        distance *= 2


def scatter(comm, whole: np.ndarray | None, part: np.ndarray, root: int = 0) -> None:
    """Give each rank its part: `whole` (P, …) on the root, one `part` on every rank."""
    if comm.rank == root:
        for rank in range(comm.size):
            if rank != root:
                comm.Send(whole[rank], rank, TAG)
        part[...] = whole[root]
    else:
        comm.Recv(part, root, TAG)


def gather(comm, part: np.ndarray, whole: np.ndarray | None, root: int = 0) -> None:
    """The reverse of `scatter`: each rank's part goes to its place in the root's `whole`."""
    if comm.rank == root:
        whole[root] = part
        for rank in range(comm.size):
            if rank != root:
                comm.Recv(whole[rank], rank, TAG)
    else:
        comm.Send(part, root, TAG)


def allreduce(comm, array: np.ndarray, schedule: str = "ring") -> None:
    """Replace `array` on every rank by the sum over all ranks, in place.

    The array is C-contiguous, float32 or float64, of the same shape on all ranks; `comm` is an
    `mpi4py.MPI.Comm`. The same numbers give the same bits, on all ranks. Raises ValueError or
    TypeError, before anything is sent, for an unknown schedule or an unfit array.
    """
    if schedule not in SCHEDULES:
        raise ValueError(f"schedule should be one of {', '.join(SCHEDULES)}, got {schedule!r}")
    if not isinstance(array, np.ndarray) or array.dtype not in (np.float32, np.float64):
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"array should be a NumPy array of float32 or float64, got {kind}")
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise ValueError("array should be C-contiguous and writeable; try np.ascontiguousarray")
    perform(comm, array.reshape(-1), SCHEDULES[schedule](comm.rank, comm.size, array.size))


def perform(comm, flat: np.ndarray, steps) -> None:
    """Carry out a rank's steps on its elements."""
    received = np.empty_like(flat)
    for to, a, b, source, c, d, add in steps:
        sending, receiving = to != NOBODY and a < b, source != NOBODY and c < d
        into = received[c:d] if add else flat[c:d]
        if sending and receiving:
            comm.Sendrecv(flat[a:b], to, TAG, into, source, TAG)
        elif sending:
            comm.Send(flat[a:b], to, TAG)
        elif receiving:
            comm.Recv(into, source, TAG)
        if receiving and add:
            flat[c:d] += into
