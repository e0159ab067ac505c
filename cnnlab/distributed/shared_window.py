"""Memory that the ranks of one machine share: a window (MPI 3.1, chapter 11).

Through it ranks are a team, as threads are. Between machines there are only messages.
"""

import functools

import numpy as np

from cnnlab.kernels.allreduce import LINE, N_COUNTS, Team
from cnnlab.kernels.allreduce import row as row_length


def one_machine(comm) -> bool:
    """Whether a communicator's ranks could share memory. All ranks ask together."""
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    try:
        return comm.allreduce(node.size, MPI.MIN) == comm.size
    finally:
        node.Free()


def team(comm, n: int) -> Team:
    """The team of a communicator's ranks, for gradients of n float32. All ranks call it together.

    The same communicator and n have the same team, since MPI has few windows.
    """
    if (known := comm.Get_attr(keyval())) is None:
        comm.Set_attr(keyval(), known := {})
    if n not in known:
        known[n] = new_team(comm, n)
    return known[n][0]


def new_team(comm, n: int):
    """A new team, and its window, which must be kept as long as the team."""
    from mpi4py import MPI

    line, row, counts = 8 * LINE, 4 * row_length(n), 8 * N_COUNTS  # in bytes
    size = line + comm.size * row + counts
    window = MPI.Win.Allocate_shared(size if comm.rank == 0 else 0, 1, comm=comm)
    memory = np.frombuffer(window.Shared_query(0)[0], np.uint8)
    memory = memory[-memory.ctypes.data % line :]  # the same for all: memory is shared page by page
    parts = memory[: comm.size * row].view(np.float32).reshape(comm.size, -1)
    shared = memory[comm.size * row :][:counts].view(np.int64)
    window.Lock_all(MPI.MODE_NOCHECK)  # from here on all may read and write
    parts[comm.rank], shared[:] = 0, 0
    comm.Barrier()
    return Team(comm.size, parts, np.zeros(n, np.float32), shared), window


@functools.cache
def keyval() -> int:
    """The key under which communicators keep their teams."""
    from mpi4py import MPI

    return MPI.Comm.Create_keyval()
