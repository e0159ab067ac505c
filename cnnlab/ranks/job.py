"""A program under mpiexec: only rank 0 speaks, and no rank is left waiting for one that failed."""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Iterator

from cnnlab.ranks import world

PATIENCE = 3.0  # seconds to see whether all ranks have failed alike


@contextlib.contextmanager
def together() -> Iterator:
    """Yield the communicator of all ranks; only rank 0 prints to standard output.

    A ValueError on all ranks (a wrong argument) is printed once and ends all with status 2. Any
    other error, or one of a single rank, ends the whole job with its traceback and status 1.
    """
    comm = world()
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
            comm.Abort(2)
        if comm.rank == 0:
            print(f"cnnlab: {problem}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None
    except BaseException:
        print(f"cnnlab: rank {comm.rank} of {comm.size} failed", file=sys.stderr)
        traceback.print_exc()
        sys.stderr.flush()
        comm.Abort(1)


def all_failed(apart) -> bool:
    """Whether every rank comes to ask this within PATIENCE."""
    request, end = apart.Ibarrier(), time.monotonic() + PATIENCE
    while not request.Test():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
