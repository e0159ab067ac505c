"""The MPI library's own collectives, and a race of others against them."""

from collections.abc import Callable
from functools import partial

import numpy as np

from cnnlab.ranks import measure
from cnnlab.ranks.schedules import block


def race(operation: str, calls: dict, n: int, repeats: int) -> dict[str, list[float]]:
    """Runs on every rank: samples of the seconds of each call; None stands for MPI's own."""
    from mpi4py import MPI

    comm, array = MPI.COMM_WORLD, np.zeros(n, np.float32)
    own = mpi(operation)
    timed = {name: partial(call or own, comm, array) for name, call in calls.items()}
    return measure.alternately(comm, timed, repeats)


def mpi(operation: str) -> Callable:
    """The library's own operation, as a function of (comm, array)."""
    from mpi4py import MPI

    def allgather(comm, array):
        blocks = (block(rank, comm.size, array.size) for rank in range(comm.size))
        comm.Allgatherv(MPI.IN_PLACE, (array, [last - first for first, last in blocks]))

    def reduce(comm, array):
        comm.Reduce(*((MPI.IN_PLACE, array) if comm.rank == 0 else (array, None)))

    return {
        "allreduce": lambda comm, array: comm.Allreduce(MPI.IN_PLACE, array),
        "broadcast": lambda comm, array: comm.Bcast(array),
        "allgather": allgather,
        "reduce": reduce,
    }[operation]
