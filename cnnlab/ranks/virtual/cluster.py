"""A cluster of virtual ranks, for a machine without mpiexec; called as `ranks.cluster.Cluster` is.

While its ranks run, `from mpi4py import MPI` finds a stand-in for mpi4py, whose COMM_WORLD is the
present rank's, and `time.perf_counter` is that rank's clock: all times are virtual.
"""

import contextlib
import copy
import io
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from types import ModuleType
from unittest import mock

from cnnlab import ranks
from cnnlab.ranks import mpi
from cnnlab.ranks.virtual.world import RAISED, Comm, World

HERE = (
    "no mpiexec here: {} virtual ranks in one process, whose times are virtual; "
    "what MPI shares in memory they send"
)


class StandIn(ModuleType):
    """In place of mpi4py.MPI: its names, as the rank sees them that runs at present."""

    Comm = Comm

    def __init__(self):
        super().__init__("mpi4py.MPI")

    def __getattr__(self, name: str):
        return getattr(mpi, name)

    @property
    def COMM_WORLD(self) -> Comm:
        return mpi.virtual_rank()

    @property
    def COMM_SELF(self) -> Comm:
        mine = self.COMM_WORLD
        return Comm(mine.world, mine.me, (mine.me,), "alone")

    def Get_library_version(self) -> str:
        return "virtual ranks of cnnlab, in place of an MPI library"


class VirtualCluster:
    """Virtual ranks: `run` calls a function on all of them; `view` is for `%%px`."""

    def __init__(self, n_ranks: int, error: type[RuntimeError]):
        self.n_ranks, self.error, self._closed = n_ranks, error, ""
        self.view = View(self)

    def run(self, function: Callable, *arguments, timeout: float | None = None, **options) -> list:
        """Call `function(*arguments, **options)` on every rank; return the results in rank order.

        Raises `error` where a rank raises, or all deadlock; the cluster is then closed.
        """
        if self._closed:
            raise self.error(f"this cluster is closed: {self._closed}; start a new one")

        def program(comm: Comm):
            return function(*copy.deepcopy(arguments), **copy.deepcopy(options))

        try:
            with standing_in(StandIn()):
                return World(self.n_ranks, measured=True).run(program)
        except Exception as error:
            self._closed = "a rank failed"
            raised = [note.split()[3] for note in getattr(error, "__notes__", ()) if RAISED in note]
            if not raised:  # ranks that wait for each other, or messages that are left over
                raise self.error(str(error)) from None
            name, text = type(error).__name__, "".join(traceback.format_exception(error))
            raise self.error(f"rank {raised[0]} raised {name}: {error}\n{text}") from None


class View:
    """What `%%px` and executors need of ipyparallel's view of a cluster."""

    def __init__(self, owner: VirtualCluster):
        self.ranks, self.client = owner, self
        self.names: list[dict] = [{} for _ in range(owner.n_ranks)]

    def activate(self) -> None:
        """Let cells under `%%px` run on all ranks; they keep their names from cell to cell."""
        from IPython import get_ipython

        get_ipython().register_magic_function(self.px, "cell", "px")

    def px(self, _, cell: str) -> None:
        """Run a cell on every rank, and show what each prints."""
        for rank, text in enumerate(self.ranks.run(self.execute, cell)):
            if text:
                print(f"[stdout:{rank}] {text}", end="")

    def execute(self, cell: str) -> str:
        """On a rank: what a cell prints there."""
        comm, said = sys.modules["mpi4py"].MPI.COMM_WORLD, io.StringIO()
        names = self.names[comm.rank]
        names |= {"comm": comm, "rank": comm.rank, "size": comm.size, "np": mpi.np}
        names |= {"MPI": sys.modules["mpi4py"].MPI, "print": lambda *w: print(*w, file=said)}
        exec(compile(cell, "cell", "exec"), names)
        return said.getvalue()

    def executor(self) -> Executor:
        """A pool of one thread: virtual ranks compute in turn."""
        return ThreadPoolExecutor(1)


@contextlib.contextmanager
def standing_in(MPI: StandIn) -> Iterator[None]:
    """Within this, programs find `MPI` in mpi4py, and the clock of the present rank."""
    mpi4py = ModuleType("mpi4py")
    mpi4py.MPI, mpi4py.__spec__ = MPI, ModuleSpec("mpi4py", None)
    with (
        mock.patch.object(time, "perf_counter", MPI.Wtime),
        mock.patch.object(ranks, "present", lambda: MPI.COMM_WORLD),
        contextlib.redirect_stdout(io.StringIO()),  # what a rank prints stays there, as with MPI
    ):
        before = {name: sys.modules.pop(name, None) for name in ("mpi4py", "mpi4py.MPI")}
        sys.modules["mpi4py"] = mpi4py
        try:
            yield
        finally:
            del sys.modules["mpi4py"]
            sys.modules |= {name: module for name, module in before.items() if module}
