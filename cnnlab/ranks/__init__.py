"""Ranks: several processes, each with a memory of its own, that send each other messages (MPI)."""

import importlib.util


class Alone:
    """Stands in for an MPI communicator where there is no MPI: a world of one rank."""

    rank, size = 0, 1

    def Barrier(self) -> None:
        """Nobody to wait for."""


def world():
    """MPI's communicator of all ranks; a stand-in of one rank where mpi4py is not installed."""
    if importlib.util.find_spec("mpi4py") is None:
        return Alone()
    from mpi4py import MPI

    return MPI.COMM_WORLD
