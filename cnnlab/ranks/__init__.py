"""Ranks: processes with separate memories that exchange messages through MPI."""

import importlib.util
import os

from cnnlab.ranks import shared_memory_files

# Set before MPI starts, unless the reader has. Open MPI needs no UCX for shared memory within a
# machine, and reports a false error if it finds one.
SETTINGS = {"OMPI_MCA_osc": "^ucx"}


class Alone:
    """A world of one rank, in place of MPI's communicator where mpi4py is not installed."""

    rank, size = 0, 1

    def Barrier(self) -> None:
        """Return at once: there is no other rank to wait for."""


def prepare() -> None:
    """Set what MPI looks at when it starts."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


def world():
    """The communicator of all ranks; `Alone` where mpi4py is not installed."""
    if importlib.util.find_spec("mpi4py") is None:
        return Alone()
    prepare()
    from mpi4py import MPI

    if MPI.COMM_WORLD.size == 1:  # one rank shares no memory: leave no file of it behind
        shared_memory_files.remove(shared_memory_files.mapped_by([os.getpid()]))
    return MPI.COMM_WORLD
