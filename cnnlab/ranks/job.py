"""A program under mpiexec: rank 0 alone prints, and no rank waits for one that has failed."""

import atexit
import contextlib
import math
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np

from cnnlab.ranks import Alone, prepare, shared_memory_files, world
from cnnlab.runtime import failures, thread_pool
from cnnlab.runtime.failures import MENDABLE, MPIEXEC, one_line, status

_, OPEN_MPIS = MPIEXEC
RANK = "PMI_RANK", "OMPI_COMM_WORLD_RANK"  # mpiexec sets one to the number of this rank
PATIENCE = 3.0  # seconds to see whether every rank has failed
FAREWELL = 0.5  # seconds for mpiexec to forward a message; it drops what is left when the job ends


@contextlib.contextmanager
def together(debug: bool = False) -> Iterator:
    """Yield the communicator of all ranks; rank 0 alone prints to standard output.

    A failure that a user can mend ends the job with one line, printed once if every rank fails
    (a wrong argument), and its status; any other ends it with the rank's traceback and status 1,
    as all do with `debug`. Raises ValueError if there is no MPI, if mpiexec and mpi4py belong to
    different MPI libraries, or if Slurm's srun has not made one world of its tasks.
    """
    shared_memory_files.make_room(started(), is_first())
    refuse_open_mpis_mpiexec()
    comm = world()
    if isinstance(comm, Alone):
        raise ValueError("ranks need mpi4py and an MPI library: pip install mpi4py mpich")
    if comm.size == 1 < started():
        raise ValueError(wrong_mpiexec())
    if comm.size == 1 < int(os.environ.get("SLURM_STEP_NUM_TASKS", 1)):
        refuse_srun()
    if comm.size == 1:
        yield comm
        return
    private = comm.Dup()  # so that no other message can match all_failed's barrier
    try:
        with open(os.devnull, "w") as nowhere:
            with contextlib.redirect_stdout(sys.stdout if comm.rank == 0 else nowhere):
                yield comm
    except KeyboardInterrupt:
        interrupted()
    except BaseException as problem:
        if debug or not isinstance(problem, MENDABLE):
            what = f"cnnlab: rank {comm.rank} of {comm.size} failed\n{traceback.format_exc()}"
            print(what, file=sys.stderr, flush=True)
            abort(comm, 1)
        everywhere = all_failed(private)
        if comm.rank == 0 or not everywhere:
            which = "" if everywhere else f"rank {comm.rank}: "
            print(f"cnnlab: {which}{one_line(problem)}", file=sys.stderr, flush=True)
        if everywhere:
            raise SystemExit(status(problem)) from None
        abort(comm, status(problem))


def refuse_open_mpis_mpiexec() -> None:
    """Raise ValueError if it starts a program of another MPI, before that MPI starts and aborts."""
    if OPEN_MPIS not in os.environ or "mpi4py.MPI" in sys.modules or not find_spec("mpi4py"):
        return
    prepare()
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    if not library().startswith("Open MPI"):
        raise ValueError(wrong_mpiexec())
    MPI.Init_thread()
    atexit.register(MPI.Finalize)


def wrong_mpiexec() -> str:
    """What to say if mpiexec and mpi4py do not belong together."""
    return (
        f"mpiexec: expected one MPI world of {started()} ranks, got {started()} worlds of 1: "
        f"it belongs to another MPI than the one mpi4py has loaded, {library()}"
    )


def refuse_srun() -> None:
    """End the tasks of Slurm's srun that are each alone: the first raises ValueError for all."""
    if os.environ.get("SLURM_PROCID", "0") != "0":
        raise SystemExit(2)
    tasks = os.environ["SLURM_STEP_NUM_TASKS"]
    way = "pmix" if library().startswith("Open MPI") else "pmi2"
    raise ValueError(
        f"srun: expected one MPI world of {tasks} ranks, got {tasks} worlds of 1: "
        f"start them with srun --mpi={way}"
    )


def end_when_interrupted() -> None:
    """Under mpiexec, let an interrupt end the job at any moment, in one line and with status 130.

    Rank 0 does that; were another to leave it, rank 0 might wait for that one and say nothing. An
    exception would not do: some modules crash if one reaches them while they are imported.
    """
    if any(name in os.environ for name in MPIEXEC):
        signal.signal(signal.SIGINT, interrupted if is_first() else signal.SIG_IGN)
        if failures.interrupted_early and is_first():
            interrupted()


def interrupted(*_) -> None:
    """End an interrupted job with one line of rank 0; does not return."""
    if is_first():
        os.write(sys.stderr.fileno(), b"cnnlab: stopped\n")
    time.sleep(FAREWELL)
    shared_memory_files.remove(shared_memory_files.mapped_by([os.getpid()]))
    if by_mpich():
        # What MPI_Abort sends; MPI may not have started yet. An exit alone would end no other rank.
        tell_mpiexec("cmd=abort exitcode=130")
        time.sleep(PATIENCE)
    MPI = sys.modules.get("mpi4py.MPI")
    if hasattr(MPI, "COMM_WORLD") and MPI.Is_initialized() and not MPI.Is_finalized():
        MPI.COMM_WORLD.Abort(130)
    os._exit(130)


def by_mpich() -> bool:
    """Whether MPICH's mpiexec has started this process, and not srun."""
    return "PMI_FD" in os.environ and "PMI_JOBID" not in os.environ


def tell_mpiexec(what: str, answered: bool = False) -> None:
    """Send MPICH's mpiexec a line of PMI's protocol, version 1, and wait for the answer to it."""
    os.write(int(os.environ["PMI_FD"]), f"{what}\n".encode())
    if answered:
        os.read(int(os.environ["PMI_FD"]), 1024)


def is_first() -> bool:
    """Whether this is rank 0 of mpiexec, or no rank at all; without starting MPI."""
    return all(os.environ.get(name, "0") == "0" for name in RANK)


def threads_for(strategies, asked: int | None) -> int:
    """The threads of each rank: as asked, else one per core if a strategy is parallel.

    Raises ValueError if several are asked for and none is.
    """
    parallel = any(strategy.parallel for strategy in strategies)
    if asked is not None and asked > 1 and not parallel:
        names = ", ".join(strategy.name for strategy in strategies)
        raise ValueError(f"--threads: expected 1, {names} runs on one thread, got {asked}")
    if asked and asked > (cores := thread_pool.usable_cores()) and is_first():
        print(f"cnnlab: --threads: {asked} threads share {cores} cores", file=sys.stderr)
    return asked or (min(thread_pool.size(), thread_pool.usable_cores()) if parallel else 1)


def started() -> int:
    """The number of ranks that mpiexec started, this process among them; 1 without it."""
    return max(int(os.environ.get(name, 1)) for name in MPIEXEC)


def abort(comm, exit_status: int) -> None:
    """End all ranks, after mpiexec has forwarded this one's message; does not return."""
    time.sleep(FAREWELL)
    shared_memory_files.remove(shared_memory_files.mapped_by([os.getpid()]))
    comm.Abort(exit_status)


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


# --- a rank that may be killed without ending the job ---------------------------------------------

MARK = "CNNLAB_GUARD"  # in a rank's environment: where it tells its guard that it can be missed


def begin() -> None:
    """Go on in a fork of this process, which guards it. To be called before MPI starts.

    Raises ValueError where no mpiexec of MPICH has started this process.
    """
    if not by_mpich():
        raise ValueError("--lost: expected MPICH's mpiexec with go-on, got another start, or none")
    ended, guards = os.pipe()
    news, rank_tells = os.pipe()
    sys.stdout.flush()
    if rank := os.fork():
        os.close(rank_tells)
        wait(rank, news)
    os.close(guards)
    os.environ[MARK] = str(rank_tells)
    threading.Thread(target=end_after, args=(ended,), daemon=True).start()


def end_after(ended: int) -> None:
    """End this rank once its guard has been killed: there would be nobody left to end it."""
    os.read(ended, 1)
    os._exit(1)


def can_be_missed() -> None:
    """Tell the guard that from now on the others can do without this rank."""
    files = shared_memory_files.mapped_by([os.getpid()])
    os.write(int(os.environ[MARK]), "\n".join(["yes", *files]).encode())


def wait(rank: int, news: int) -> None:
    """Wait for the rank, and tell mpiexec that it is done, or that all are; does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the rank answers that
    status = os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1])
    can_go_on, *files = os.read(news, 1 << 16).decode().split("\n")
    shared_memory_files.remove(files)
    if status < 0 and (is_first() or not can_go_on):
        why = "it has the parameters" if can_go_on else "training had not begun"
        said = f"cnnlab: rank {os.environ['PMI_RANK']} was killed: the job ends, as {why}\n"
        os.write(sys.stderr.fileno(), said.encode())
        time.sleep(FAREWELL)
        tell_mpiexec("cmd=abort exitcode=1", answered=True)
        time.sleep(PATIENCE)
        os._exit(1)
    with contextlib.suppress(OSError):  # MPI has said so itself
        tell_mpiexec("cmd=finalize", answered=True)
    os._exit(max(status, 0))


# --- ranks of which any but rank 0 may be killed, while the others go on --------------------------

FIRST = 0  # the rank that must live
TAG = 0  # of messages that make up a collective
SURVIVORS_PATIENCE = 1.0  # seconds for a message to come to its end after its other side was killed


class Lost(Exception):
    """A rank has been killed; what it has sent before has been received."""

    def __init__(self, rank: int):
        super().__init__(f"rank {rank} was lost")
        self.rank = rank


# What happens if a rank is lost that others can do without.
LOST = {
    "end": "the job ends",
    "go-on": "the others do its work; with --staleness, under mpiexec on one machine",
}


class Survivors:
    """A communicator of guarded ranks, called as mpi4py's; what it lacks would wait for the dead.

    Messages go between rank 0 and others, and collectives by way of rank 0. It sees by their
    processes whether ranks live, so all must be on its machine, else ValueError. Its `Recv` raises
    `Lost` when one has been killed; then `lost`, a set, has it.
    """

    def __init__(self, comm):
        if MARK not in os.environ:
            raise ValueError("comm: expected ranks under guard, got ranks that mpiexec ends")
        hosts, self.pids = zip(*comm.allgather((socket.gethostname(), os.getpid())), strict=True)
        if (n := len({*hosts})) > 1:
            raise ValueError(f"--lost: expected ranks of one machine with go-on, got {n} machines")
        self.comm, self.rank, self.size, self.lost = comm, comm.rank, comm.size, set()
        can_be_missed()

    @property
    def others(self) -> list[int]:
        """The ranks beside rank 0 that are not lost."""
        return [rank for rank in range(1, self.size) if rank not in self.lost]

    def lives(self, rank: int) -> bool:
        """Whether there is a rank's process."""
        try:
            os.kill(self.pids[rank], 0)
        except OSError:  # there is none of that number, or another user's
            return False
        return True

    def lose(self, rank: int) -> None:
        """Go on without a rank; RuntimeError if it was the last but rank 0."""
        self.lost.add(rank)
        if not (left := len(self.others)):
            raise RuntimeError(f"rank {rank} was lost, and no other worker is left")
        workers = "worker" if left == 1 else "workers"
        what = f"cnnlab: rank {rank} was lost: going on with {left} {workers}"
        print(what, file=sys.stderr, flush=True)

    def Send(self, array: np.ndarray, to: int, tag: int = TAG) -> None:
        """Send an array; to one that has been killed meanwhile, nothing."""
        if self.rank != FIRST:
            self.comm.Send(array, to, tag)
        else:
            self.ends(self.comm.Isend(array, to, tag), to)

    def Recv(self, array: np.ndarray, source: int = FIRST, tag: int = TAG) -> None:
        """Receive an array; on rank 0, Lost is raised once a rank has been killed instead."""
        if self.rank != FIRST:
            self.comm.Recv(array, FIRST)
        else:
            array[:] = self.message(source, tag).view(array.dtype)

    def message(self, source: int, tag: int) -> np.ndarray:
        """The bytes of a message, uint8 (n); Lost once a rank that might send one is killed."""
        from mpi4py import MPI

        status = MPI.Status()
        while True:
            among = [source] if source in self.others else self.others
            # Before it looks for messages: what the killed have sent is there.
            killed = [rank for rank in among if not self.lives(rank)]
            os.sched_yield()  # there may be more ranks than cores
            if self.comm.Iprobe(source, tag, status):
                array = np.empty(status.count, np.uint8)
                request = self.comm.Irecv(array, status.source, status.tag)
                if self.ends(request, status.source) and status.source not in self.lost:
                    return array
            elif killed:
                self.lose(killed[0])
                raise Lost(killed[0])

    def ends(self, request, rank: int) -> bool:
        """Whether a message comes to its end, which it may not if the other side is killed."""
        from mpi4py import MPI

        killed = math.inf
        try:
            while not request.Test():
                if killed == math.inf and not self.lives(rank):
                    killed = time.monotonic()
                if time.monotonic() - killed > SURVIVORS_PATIENCE:
                    return False
        except MPI.Exception:  # the other side's memory is no longer there
            time.sleep(SURVIVORS_PATIENCE)
            if self.lives(rank):
                raise
            return False
        return True

    def by_first(self, value, combine: Callable[[dict], object]):
        """The result of `combine` on rank 0, given a value of each rank, by rank; for all."""
        if self.rank != FIRST:
            self.comm.send(value, FIRST, TAG)
            return self.comm.recv(source=FIRST, tag=TAG)
        values = {FIRST: value}
        for rank in self.others:
            with contextlib.suppress(Lost):
                values[rank] = pickle.loads(self.message(rank, TAG))
        combined = combine(values)
        for rank in self.others:
            self.Send(np.frombuffer(pickle.dumps(combined), np.uint8), rank, TAG)
        return combined

    def allreduce(self, number: float) -> float:
        """The sum over all ranks, for all."""
        return self.by_first(number, lambda values: sum(values.values()))

    def allgather(self, value) -> list:
        """The values of all ranks, for all; in place of a lost rank's, that of rank 0."""
        return self.by_first(
            value, lambda values: [values.get(rank, values[FIRST]) for rank in range(self.size)]
        )

    def Barrier(self) -> None:
        """Wait until all are here."""
        self.allreduce(0)

    def Bcast(self, array: np.ndarray, root: int = FIRST) -> None:
        """Copy the array of rank 0 to all."""
        mine = array if self.rank == FIRST else None
        array[...] = self.by_first(mine, lambda values: values[FIRST])
