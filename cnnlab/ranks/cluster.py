"""Find and end the processes of a cluster, even after the notebook that started it was killed.

Every process of a cluster has the cluster's name in its environment. The program
`python -m cnnlab.ranks.cluster PID NAME` waits for process PID to end, then ends the cluster.
"""

import contextlib
import logging
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from unittest import mock

import psutil
from traitlets.config import Config

from cnnlab.ranks import SETTINGS, shared_memory_files
from cnnlab.ranks.virtual.cluster import HERE, VirtualCluster
from cnnlab.runtime import failures
from cnnlab.runtime.arguments import at_least

MARK = "CNNLAB_CLUSTER"


def members(name: str) -> list[psutil.Process]:
    """The running processes of a cluster, except this one."""
    return [
        process
        for process in psutil.process_iter(["environ", "status", "cmdline"])
        if (process.info["environ"] or {}).get(MARK) == name  # None: another user's
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and process.pid != os.getpid()
    ]


def end(name: str, shared: Iterable[str] = ()) -> None:
    """Kill the processes of a cluster, wait until they have ended, and remove their shared memory.

    `shared` names the files of ranks that may have ended already.
    """
    deadline, files = time.monotonic() + 15, set(shared)
    while (left := members(name)) and time.monotonic() < deadline:
        files |= shared_memory_files.mapped_by(process.pid for process in left)
        for process in left:  # again and again: a process may start another meanwhile
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.02)
    shared_memory_files.remove(files)


def watch(name: str, folder: str) -> subprocess.Popen:
    """Start a process that ends the cluster and its folder when this one ends; kill to cancel."""
    return subprocess.Popen(
        [sys.executable, "-m", "cnnlab.ranks.cluster", str(os.getpid()), name, folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # an interrupt of the notebook does not reach it
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


if __name__ == "__main__":
    watched, cluster_name, keys = sys.argv[1:]
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(watched)).wait()
    end(cluster_name)
    shutil.rmtree(keys, ignore_errors=True)


# --- MPI ranks inside a notebook: ipyparallel engines that mpiexec starts and a watchdog ends -----

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
DIED = "a rank died without a traceback: it was killed, or ran out of memory"
# The controller registers a rank after two heartbeats, by default three seconds apart.
HEARTBEAT = ["--HeartMonitor.period=100", "--HeartMonitor.max_heartmonitor_misses=300"]
# Of the transports of UCX, libfabric and Open MPI, those that no other machine reaches.
ONE_MACHINE = {
    "UCX_TLS": "self,sm",
    "FI_TCP_IFACE": "lo0" if sys.platform == "darwin" else "lo",
    "OMPI_MCA_btl": "^tcp",
}
GRACE = 3.0  # seconds for the other ranks to finish once one has failed
PRELUDE = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
"""


class RankError(RuntimeError):
    """The failure of a rank: the message has its number and traceback."""


class Cluster:
    """Running ranks: `run` calls a function on all of them; `view` is ipyparallel's, for `%%px`.

    Cells under `%%px` find `MPI`, `comm`, `rank`, `size` and `np` defined.
    """

    def __init__(self, client, engines: list[int], name: str, errors):
        self._errors = errors  # ipyparallel's
        self.view = client.direct_view(engines, block=True)  # in rank order
        self._execute, self.view.execute = self.view.execute, self.execute  # which `%%px` calls
        self.n_ranks, self._client, self._engines, self._name = len(engines), client, engines, name
        self._closed, self._looked = "", 0.0

    def execute(self, code: str, *arguments, **options):
        """Run a cell on every rank, as ipyparallel does. Raises RankError if a rank has died."""
        if not self._closed and not self._alive():
            raise self._died()
        return self._execute(code, *arguments, **options)

    def run(self, function: Callable, *arguments, timeout: float | None = None, **options) -> list:
        """Call `function(*arguments, **options)` on every rank; return the results in rank order.

        Raises RankError within seconds if a rank raises (with its traceback) or dies, or after
        `timeout` seconds. The cluster is then closed, unless every rank has finished.
        """
        if self._closed:
            raise RankError(f"this cluster is closed: {self._closed}; start a new one")
        try:
            calls = [
                self._client[i].apply_async(function, *arguments, **options) for i in self._engines
            ]
        except (self._errors.NoEnginesRegistered, IndexError):  # since the last call
            raise self._died() from None
        deadline = time.monotonic() + timeout if timeout is not None else None
        try:
            while not all(call.ready() for call in calls):
                failed = [
                    i for i, call in enumerate(calls) if call.ready() and not call.successful()
                ]
                self._stop_waiting(calls, failed, deadline)
                time.sleep(0.001)
        except KeyboardInterrupt:
            self._close("it was interrupted")
            raise
        failed = [i for i, call in enumerate(calls) if not call.successful()]
        if failed:
            raise self._error(failed[0], calls[failed[0]])
        return [call.get() for call in calls]

    def _stop_waiting(self, calls, failed: list[int], deadline: float | None) -> None:
        """Raise RankError if a rank has failed or died, or the deadline has passed."""
        if failed:
            grace = time.monotonic() + GRACE
            while not all(call.ready() for call in calls) and time.monotonic() < grace:
                time.sleep(0.01)
            stuck = [i for i, call in enumerate(calls) if not call.ready()]
            if stuck:
                error = self._error(failed[0], calls[failed[0]])
                self._close(f"rank {failed[0]} failed while rank {stuck[0]} was waiting for it")
                raise error
        elif deadline is not None and time.monotonic() > deadline:
            stuck = [i for i, call in enumerate(calls) if not call.ready()]
            self._close("it timed out")
            raise RankError(f"not finished in time: ranks {', '.join(map(str, stuck))}")
        elif time.monotonic() - self._looked > 0.5:  # listing all processes is slow
            self._looked = time.monotonic()
            if not self._alive():
                raise self._died()

    def _alive(self) -> bool:
        """Whether every rank's process is there."""
        commands = [(process.info["cmdline"] or [])[1:3] for process in members(self._name)]
        return commands.count(["-m", "ipyparallel.engine"]) >= self.n_ranks

    def _error(self, rank: int, call) -> RankError:
        """The error that a rank raised, with its traceback as plain text."""
        try:
            call.get(timeout=0)
        except self._errors.RemoteError as error:
            # ipyparallel's own, for a rank that died; mpiexec then interrupts the others.
            died = error.ename == "EngineError"
            if died or (error.ename == "KeyboardInterrupt" and not self._alive()):
                return self._died()
            lines = [line for part in error.render_traceback() for line in part.splitlines()]
            text = COLOURS.sub("", "\n".join(lines))
            return RankError(f"rank {rank} raised {error.ename}: {error.evalue}\n{text}")
        raise AssertionError(f"rank {rank} raised nothing")

    def _died(self) -> RankError:
        """The error to raise for a rank that died, once the cluster is closed."""
        self._close("a rank died")
        return RankError(DIED)

    def _close(self, why: str) -> None:
        self._closed = why
        end(self._name)


@contextlib.contextmanager
def cluster(n_ranks: int, *, n_threads: int = 1, timeout: float = 120) -> Iterator[Cluster]:
    """Start `n_ranks` MPI ranks for a `with` block; there may be more ranks than cores.

    Each rank runs `n_threads` threads. No process outlives the block or the program. Where there is
    no mpiexec they are virtual ranks, which is said in one line. Raises ValueError unless both
    numbers are at least 1; RuntimeError if mpiexec and mpi4py belong to different MPI libraries, or
    if the ranks do not start in `timeout` seconds.
    """
    at_least("n_ranks", n_ranks, 1)
    at_least("n_threads", n_threads, 1)
    if not (mpiexec := find_mpiexec()):
        print(HERE.format(n_ranks))
        yield VirtualCluster(n_ranks, RankError)
        return
    import ipyparallel  # is not there where only lessons without ranks have been installed

    shared_memory_files.make_room(n_ranks)
    name = uuid.uuid4().hex
    folder = tempfile.mkdtemp(prefix="cnnlab-ranks-")
    watcher = watch(name, folder)
    starter = ipyparallel.Cluster(
        engines="mpi",
        n=n_ranks,
        profile_dir=folder,
        config=configuration(mpiexec, name, n_threads),
        controller_args=HEARTBEAT,
        log_level=logging.CRITICAL,
        engine_timeout=timeout,
        shutdown_atexit=False,  # the watchdog does that
    )
    client, shared = None, set()
    try:
        quiet = mock.patch.dict(os.environ, IPP_NONINTERACTIVE="1")  # no bars, no log
        with quiet, failures.telling(f"starting {n_ranks} ranks", after=5):
            try:
                client = starter.start_and_connect_sync(n=n_ranks)
            except Exception as error:
                raise RuntimeError(
                    f"{n_ranks} ranks did not start with {mpiexec} in {timeout:g} s: {error}"
                ) from error
        engines = ordered(client, n_ranks, mpiexec)
        shared = shared_memory_files.mapped_by(process.pid for process in members(name))
        yield Cluster(client, engines, name, ipyparallel.error)
    finally:
        if client is not None:
            client.close(linger=0)
        end(name, shared)
        watcher.kill()
        watcher.wait()
        shutil.rmtree(folder, ignore_errors=True)


def ordered(client, n_ranks: int, mpiexec: str) -> list[int]:
    """The engines in rank order; raises RuntimeError unless they form one MPI world."""
    view = client[:]
    view.execute(PRELUDE, block=True)
    worlds = view.apply_sync(about_this_rank)
    if {size for _, size, _ in worlds} != {n_ranks}:
        raise RuntimeError(
            f"{mpiexec}: expected one MPI world of {n_ranks} ranks, got "
            f"{n_ranks} worlds of {worlds[0][1]}: it belongs to another MPI than the one "
            f"mpi4py has loaded, {worlds[0][2]}"
        )
    return [engine for _, engine in sorted(zip((w[0] for w in worlds), client.ids, strict=True))]


def about_this_rank():
    """On a rank: its number, the number of ranks, and the MPI library."""
    from cnnlab.ranks import job, world

    return world().rank, world().size, job.library()


def find_mpiexec() -> str | None:
    """The mpiexec beside this Python, where pip puts it, or on the PATH; None without one."""
    folders = sysconfig.get_path("scripts"), f"{sys.prefix}/Library/bin", os.environ.get("PATH", "")
    return shutil.which("mpiexec", path=os.pathsep.join(folders))


def configuration(mpiexec: str, name: str, n_threads: int) -> Config:
    """The ipyparallel configuration that starts the controller and the engines."""
    environment = {MARK: name, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    threads = "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
    ranks = environment | SETTINGS | ONE_MACHINE | dict.fromkeys(threads, str(n_threads))
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
    options = []
    if "Open MPI" in version or "OpenRTE" in version:
        options = ["--oversubscribe", "--bind-to", "none"]
        ranks |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    config = Config(Cluster={"delay": 0})  # engines wait for the controller by themselves
    config.LocalControllerLauncher.environment = environment
    config.MPIEngineSetLauncher.environment = ranks
    # MPICH's mpiexec listens to other machines, the gforker beside it does not. So does Open MPI's,
    # whose ranks do not: it binds to every address, and takes no loopback.
    forker = f"{mpiexec}.gforker"
    config.MPIEngineSetLauncher.mpi_cmd = [forker if Path(forker).is_file() else mpiexec]
    config.MPIEngineSetLauncher.mpi_args = options
    return config
