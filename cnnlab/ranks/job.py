"""A program under mpiexec: rank 0 alone prints, and no rank waits for one that has failed."""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Iterator

from cnnlab.ranks import Alone, shared_memory_files, world

STARTED = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"  # mpiexec sets one to the number of ranks
PATIENCE = 3.0  # seconds to see whether every rank has failed
FAREWELL = 0.5  # seconds for mpiexec to forward a message; it drops what is left when the job ends


@contextlib.contextmanager
def together() -> Iterator:
    """Yield the communicator of all ranks; rank 0 alone prints to standard output.

    A ValueError ends the job with its message and status 2, printed once if every rank raises it
    (a wrong argument); any other error ends it with the rank's traceback and status 1. Raises
    ValueError if there is no MPI, or if mpiexec and mpi4py belong to different MPI libraries.
    """
    comm = world()
    if isinstance(comm, Alone):
        raise ValueError("ranks need mpi4py, which is not installed: pip install mpi4py mpich")
    started = max(int(os.environ.get(name, 1)) for name in STARTED)
    if comm.size == 1 < started:
        raise ValueError(
            f"mpiexec: expected one MPI world of {started} ranks, got {started} worlds of 1: "
            f"it belongs to another MPI than the one mpi4py has loaded, {library()}"
        )
    if comm.size == 1:
        yield comm
        return
    private = comm.Dup()  # so that no other message can match all_failed's barrier
    try:
        with open(os.devnull, "w") as nowhere:
            with contextlib.redirect_stdout(sys.stdout if comm.rank == 0 else nowhere):
                yield comm
    except ValueError as problem:
        if not all_failed(private):
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
    """End all ranks, after mpiexec has forwarded this one's message; does not return."""
    time.sleep(FAREWELL)
    shared_memory_files.remove(shared_memory_files.mapped_by([os.getpid()]))
    comm.Abort(status)


def all_failed(comm) -> bool:
    """Whether every rank calls this within PATIENCE seconds."""
    request, deadline = comm.Ibarrier(), time.monotonic() + PATIENCE
    while not request.Test():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def library() -> str:
    """The name and version of the MPI library that mpi4py has loaded."""
    from mpi4py import MPI

    return MPI.Get_library_version().split("\n")[0].strip("\0 ")
