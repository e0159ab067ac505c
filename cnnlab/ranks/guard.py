"""A rank that may be killed without ending the job: its parent tells mpiexec that it is done.

MPICH's mpiexec ends all ranks once a process that it has started is killed; with
-disable-auto-cleanup, at the next line that one of them prints. But it looks no further than that
process. So here it waits for a fork of itself, and the fork is the rank.
"""

import contextlib
import os
import signal
import sys
import threading
import time

from cnnlab.ranks import job, shared_memory_files

MARK = "CNNLAB_GUARD"  # in a rank's environment: where it tells its guard that it can be missed


def begin() -> None:
    """Go on in a fork of this process, which guards it. To be called before MPI starts.

    Raises ValueError where no mpiexec of MPICH has started this process.
    """
    if not job.by_mpich():
        raise ValueError("--lost: expected MPICH's mpiexec with go-on, got another start, or none")
    ended, guards = os.pipe()
    told, rank_tells = os.pipe()
    sys.stdout.flush()
    if rank := os.fork():
        os.close(rank_tells)
        wait(rank, told)
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


def wait(rank: int, told: int) -> None:
    """Wait for the rank, and tell mpiexec that it is done, or that all are; does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the rank answers that
    status = os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1])
    can_go_on, *files = os.read(told, 1 << 16).decode().split("\n")
    shared_memory_files.remove(files)
    if status < 0 and (job.is_first() or not can_go_on):
        why = "it has the parameters" if can_go_on else "training had not begun"
        end_all(f"cnnlab: rank {os.environ['PMI_RANK']} was killed: the job ends, as {why}\n")
    with contextlib.suppress(OSError):  # MPI has said so itself
        tell_mpiexec("cmd=finalize")
    os._exit(max(status, 0))


def end_all(why: str) -> None:
    """End the job in one line, as MPI_Abort would; does not return."""
    os.write(sys.stderr.fileno(), why.encode())
    time.sleep(job.FAREWELL)
    tell_mpiexec("cmd=abort exitcode=1")
    time.sleep(job.PATIENCE)
    os._exit(1)


def tell_mpiexec(what: str) -> None:
    """Send mpiexec a line, and wait for the answer."""
    job.tell_mpiexec(what)
    os.read(int(os.environ["PMI_FD"]), 1024)
