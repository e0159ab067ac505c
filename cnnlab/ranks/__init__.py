"""Ranks: several processes, each with a memory of its own, that send each other messages (MPI)."""

import importlib.util
import os

from cnnlab.ranks import shared_memory_files

# For windows within a machine Open MPI does not need UCX, and says an error, which is none, if it
# finds it. To be set before MPI starts.
OPEN_MPI = {"OMPI_MCA_osc": "^ucx"}


class Alone:
    """Stands in for an MPI communicator where there is no MPI: a world of one rank."""

    rank, size = 0, 1

    def Barrier(self) -> None:
        """Nobody to wait for."""


def world():
    """MPI's communicator of all ranks; a stand-in of one rank where mpi4py is not installed."""
    if importlib.util.find_spec("mpi4py") is None:
        return Alone()
    for name, value in OPEN_MPI.items():
        os.environ.setdefault(name, value)
    from mpi4py import MPI

    if MPI.COMM_WORLD.size == 1:  # with nobody to share memory, nothing of it may stay behind
        shared_memory_files.remove(shared_memory_files.mapped_by([os.getpid()]))
    return MPI.COMM_WORLD
