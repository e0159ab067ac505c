"""Ranks: processes with separate memories that exchange messages through MPI."""

import functools
import os
from collections.abc import Callable

from cnnlab.ranks import shared_memory_files

# Set before MPI starts, unless the reader has. Open MPI needs no UCX for shared memory within a
# machine, and reports a false error if it finds one.
SETTINGS = {"OMPI_MCA_osc": "^ucx"}


class Alone:
    """A world of one rank, in place of MPI's communicator where there is none."""

    rank, size = 0, 1

    def Barrier(self) -> None:
        """Return at once: there is no other rank to wait for."""


def prepare() -> None:
    """Set what MPI looks at when it starts."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


present: Callable | None = None  # where virtual ranks stand for MPI's: that of the one that runs


def world():
    """The communicator of all ranks; `Alone` where there is no MPI."""
    return present() if present else of_mpi()


@functools.cache
def of_mpi():
    """MPI's communicator of all ranks; `Alone` where there is no mpi4py, or no MPI for it."""
    prepare()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):  # the latter: it cannot load an MPI library
        return Alone()
    if MPI.COMM_WORLD.size == 1:  # one rank shares no memory: leave no file of it behind
        shared_memory_files.remove(shared_memory_files.mapped_by([os.getpid()]))
    return MPI.COMM_WORLD
