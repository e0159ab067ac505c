"""Timing between ranks: from barrier to barrier, and the slowest rank counts.

Every rank calls these functions with the same arguments, and gets the same samples.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cnnlab.ranks.schedules import block
from cnnlab.runtime.arguments import at_least
from cnnlab.runtime.failures import few

SHORTEST_SAMPLE = 2e-3  # seconds: many times the length of a barrier


def alternately(comm, calls: dict[str, Callable], repeats: int = 11) -> dict[str, list[float]]:
    """Seconds per call, `repeats` samples of each function, taken in turn; the slowest rank's.

    A sample has enough calls to fill SHORTEST_SAMPLE. Two calls come first, to warm up and to
    estimate that number. Raises ValueError unless `repeats` is at least 1.
    """
    at_least("repeats", repeats, 1)
    batches = {}
    for name, call in calls.items():
        call()
        seconds = sample(comm, call, 1)
        batches[name] = max(1, int(SHORTEST_SAMPLE / max(seconds, 1e-7)))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(few(repeats)):
        for name, call in calls.items():
            samples[name].append(sample(comm, call, batches[name]))
    return samples


def sample(comm, call: Callable, n: int) -> float:
    """The mean seconds of n calls, on the slowest rank."""
    from mpi4py import MPI  # importing it starts MPI

    comm.Barrier()
    start = MPI.Wtime()
    for _ in range(n):
        call()
    return comm.allreduce((MPI.Wtime() - start) / n, MPI.MAX)


def ping_pong(comm, sizes: Sequence[int], repeats: int = 11) -> list[list[float]]:
    """Samples of the one-way time between ranks 0 and 1, in seconds, for each size in float32.

    Raises ValueError on fewer than two ranks.
    """
    if comm.size < 2:
        raise ValueError(f"comm: expected at least two ranks, got {comm.size}")
    samples = []
    for n in sizes:
        there, back = np.ones(n, np.float32), np.ones(n, np.float32)  # zeros may share one page

        def round_trip(there=there, back=back):
            if comm.rank == 0:
                comm.Send(there, 1)
                comm.Recv(back, 1)
            elif comm.rank == 1:
                comm.Recv(back, 0)
                comm.Send(there, 0)

        times = alternately(comm, {"": round_trip}, repeats)[""]
        samples.append([t / 2 for t in times])
    return samples


# --- the MPI library's own collectives, and a race of others against them -------------------------


def race(operation: str, calls: dict, n: int, repeats: int) -> dict[str, list[float]]:
    """Runs on every rank: samples of the seconds of each call; None stands for MPI's own."""
    from mpi4py import MPI

    comm, array = MPI.COMM_WORLD, np.zeros(n, np.float32)
    own = mpi(operation)
    timed = {name: partial(call or own, comm, array) for name, call in calls.items()}
    return alternately(comm, timed, repeats)


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
