"""Names of MPI that hold in both worlds: `mpi.SUM`, `mpi.IN_PLACE`, `mpi.Win.Create(…)`.

They are mpi4py's own where its MPI runs, as it does wherever there are real ranks. Otherwise they
are texts; virtual ranks understand both. Look them up inside a function, not when a module loads.
"""

import platform
import sys
from collections.abc import Callable
from time import perf_counter
from types import SimpleNamespace

import numpy as np
from greenlet import getcurrent

REDUCTIONS = ("SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "MAXLOC", "MINLOC")
DTYPES = {"DOUBLE": "d", "FLOAT": "f", "INT": "i", "LONG": "l", "INT64_T": "q", "BYTE": "B"}
NAMES = (*REDUCTIONS, *DTYPES, "IN_PLACE", "LOCK_SHARED", "LOCK_EXCLUSIVE")
UNDEFINED = -32766  # as MPICH and Open MPI have it
OF_OBJECTS = SimpleNamespace(Create=lambda call, commute=False: lambda a, b: call(a, b, None))
INSTEAD = {"ANY_SOURCE": -2, "PROC_NULL": -1, "ANY_TAG": -1}  # MPICH's, where MPI does not run
INSTEAD |= {"Get_processor_name": platform.node, "Op": OF_OBJECTS, "Status": None}


def __getattr__(name: str):
    if name not in (*NAMES, *INSTEAD):
        raise AttributeError(f"mpi.{name}: expected one of Win, {', '.join((*NAMES, *INSTEAD))}")
    MPI = sys.modules.get("mpi4py.MPI")
    return getattr(MPI, name) if MPI else INSTEAD.get(name, name)


def is_named(item, name: str) -> bool:
    """Whether something is what MPI calls so: the text, or mpi4py's object."""
    if isinstance(item, str):
        return item == name
    MPI = sys.modules.get("mpi4py.MPI")
    mine = getattr(MPI, name, None)
    return MPI is not None and type(item) is type(mine) and bool(item == mine)


def dtype_of(item) -> np.dtype | None:
    """The dtype of MPI's name of a type, such as mpi.DOUBLE; None for anything else."""
    if isinstance(item, str):
        return np.dtype(DTYPES[item]) if item in DTYPES else None
    MPI = sys.modules.get("mpi4py.MPI")
    return np.dtype(item.tocode()) if MPI and isinstance(item, MPI.Datatype) else None


def name_of(what: str, item, among: tuple[str, ...]) -> str:
    """The name of an operation or a kind of lock. Raises ValueError if it is none of them."""
    for name in among:
        if is_named(item, name):
            return name
    raise ValueError(f"{what}: expected one of {', '.join(among)}, got {item!r}")


def virtual_rank():
    """The communicator of the virtual rank that runs at present; None of anything else."""
    return getattr(getcurrent(), "comm", None)


def Wtime() -> float:
    """The clock of a virtual rank, in virtual seconds; of anything else that of MPI."""
    if comm := virtual_rank():
        return comm.clock()
    MPI = sys.modules.get("mpi4py.MPI")
    return MPI.Wtime() if MPI else perf_counter()


def of_either(name: str, of_none: object) -> Callable:
    """A call on several requests of one world: the one that their class has, or its result."""
    return lambda given, *more: getattr(given[0], name)(given, *more) if given else of_none


SEVERAL = {"Waitall": True, "Testall": True, "Startall": None, "waitall": []}
SEVERAL |= {"Waitany": UNDEFINED, "waitany": (UNDEFINED, None)}
Request = SimpleNamespace(**{name: of_either(name, of_none) for name, of_none in SEVERAL.items()})


class Win:
    """Windows, made as mpi4py's: memory of each rank that the others may reach."""

    @staticmethod
    def Create(memory, disp_unit: int = 1, *, comm):
        """A window on an array of each rank, or None. All ranks of `comm` call it together."""
        if hasattr(comm, "window"):  # a virtual rank's
            return comm.window(memory, disp_unit)
        from mpi4py import MPI

        return MPI.Win.Create(memory, disp_unit, comm=comm)
