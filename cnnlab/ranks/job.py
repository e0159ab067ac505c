"""A program under mpiexec: only rank 0 speaks, and no rank is left waiting for one that failed."""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Iterator

from cnnlab.ranks import Alone, shared_memory_files, world

STARTED = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"  # how many ranks, says an mpiexec
PATIENCE = 3.0  # seconds to see whether all ranks have failed alike
FAREWELL = 0.5  # seconds for mpiexec to pass on a message; it loses what it has not read by the end


@contextlib.contextmanager
def together() -> Iterator:
    """Yield the communicator of all ranks; only rank 0 prints to standard output.

    A ValueError on all ranks (a wrong argument) is printed once and ends all with status 2. Any
    other error, or one of a single rank, ends the whole job with its traceback and status 1. Raises
    ValueError where there is no MPI, or where mpiexec belongs to another.
    """
    comm = world()
    if isinstance(comm, Alone):
        raise ValueError("ranks need mpi4py, which is not installed: pip install mpi4py mpich")
    started = max(int(os.environ.get(name, 1)) for name in STARTED)
    if comm.size == 1 < started:
        raise ValueError(
            f"mpiexec started {started} ranks, but each finds itself alone: it does not belong to "
            f"the MPI library that mpi4py has loaded, {library()}"
        )
    if comm.size == 1:
        yield comm
        return
    apart = comm.Dup()  # so that the question below cannot be taken for another message
    try:
        with open(os.devnull, "w") as nowhere:
            with contextlib.redirect_stdout(sys.stdout if comm.rank == 0 else nowhere):
                yield comm
    except ValueError as problem:
        if not all_failed(apart):
            print(f"cnnlab: rank {comm.rank}: {problem}", file=sys.stderr, flush=True)
            abort(comm, 2)
        if comm.rank == 0:
            print(f"cnnlab: {problem}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None
    except BaseException:
        what = f"cnnlab: rank {comm.rank} of {comm.size} failed\n{traceback.format_exc()}"
        print(what, file=sys.stderr, flush=True)
        abort(comm, 1)


def abort(comm, status: int) -> None:
    """End all ranks, once what this one has said has been heard; it does not return."""
    time.sleep(FAREWELL)
    shared_memory_files.remove(shared_memory_files.mapped_by([os.getpid()]))
    comm.Abort(status)


def all_failed(apart) -> bool:
    """Whether every rank comes to ask this within PATIENCE."""
    request, end = apart.Ibarrier(), time.monotonic() + PATIENCE
    while not request.Test():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def library() -> str:
    """The name and version of the MPI library that mpi4py has loaded."""
    from mpi4py import MPI

    return MPI.Get_library_version().split("\n")[0].strip("\0 ")
