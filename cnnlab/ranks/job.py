"""A program under mpiexec: rank 0 alone prints, and no rank waits for one that has failed."""

import atexit
import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from importlib.util import find_spec

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
    shared_memory_files.remove_abandoned()
    refuse_open_mpis_mpiexec()
    comm = world()
    if isinstance(comm, Alone):
        raise ValueError("ranks need mpi4py, which is not installed: pip install mpi4py mpich")
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
        if isinstance(problem, MENDABLE) and not debug:
            end_in_one_line(comm, private, problem)
        else:
            what = f"cnnlab: rank {comm.rank} of {comm.size} failed\n{traceback.format_exc()}"
            print(what, file=sys.stderr, flush=True)
            abort(comm, 1)


def end_in_one_line(comm, private, problem: BaseException) -> None:
    """End the job with one line about a failure: of all ranks, or of this one alone."""
    if all_failed(private):
        if comm.rank == 0:
            print(f"cnnlab: {one_line(problem)}", file=sys.stderr, flush=True)
        raise SystemExit(status(problem)) from None
    print(f"cnnlab: rank {comm.rank}: {one_line(problem)}", file=sys.stderr, flush=True)
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


def tell_mpiexec(what: str) -> None:
    """Send MPICH's mpiexec a line of PMI's protocol, version 1."""
    os.write(int(os.environ["PMI_FD"]), f"{what}\n".encode())


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
