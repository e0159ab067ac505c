"""A rank program of an answer, behind the wall: in the virtual world, and under MPI."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

PATIENCE = 30  # seconds for MPI's ranks, which wait for ever in a deadlock
JOB = "job.npz"


def has_mpi() -> bool:
    """Whether ranks can be started here."""
    from cnnlab.ranks.cluster import find_mpiexec

    try:
        return bool(find_mpiexec())
    except RuntimeError:
        return False


def in_virtual_world(program: Callable, jobs: tuple, _code: str, _expression: str) -> None:
    """Run `program(comm, array)` for each job, a tuple with an array for each rank."""
    from cnnlab.ranks.virtual import World

    for arrays in jobs:
        World(len(arrays)).run(lambda comm, arrays=arrays: program(comm, arrays[comm.rank]))


def under_mpi(_program: Callable, jobs: tuple, code: str, expression: str) -> None:
    """The same with MPI's ranks, as many as the largest job needs; arrays keep their guards."""
    from cnnlab.ranks.cluster import ONE_MACHINE, configuration, find_mpiexec

    size = max(map(len, jobs))
    roots = {f"{j}_{r}": root(a) for j, job in enumerate(jobs) for r, a in enumerate(job)}
    starts = [[start(a) for a in job] + [-1] * (size - len(job)) for job in jobs]
    np.savez(JOB, starts=np.array(starts), **roots)
    Path("program.py").write_text(f"{code}\nPROGRAM = {expression}\n", encoding="utf-8")
    engines = configuration(find_mpiexec(), "", 1).MPIEngineSetLauncher
    module = [sys.executable, "-m", "cnnlab.course.grading.programs", str(size)]
    command = [*engines.mpi_cmd, *engines.mpi_args, "-n", str(size), *module]
    places = {"PYTHONPATH": os.environ["PYTHONPATH"], "NUMBA_NUM_THREADS": "1"}
    ranks = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        env=os.environ | ONE_MACHINE | engines.environment | places,
    )  # fmt: skip
    try:
        said = ranks.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"under MPI: a deadlock, or not done after {PATIENCE} s") from None
    finally:
        if ranks.poll() is None:
            os.killpg(ranks.pid, signal.SIGKILL)
            ranks.communicate()
    if ranks.returncode:
        words = said.decode(errors="replace").strip().splitlines()
        told = [line for line in words if "Error" in line or "rror:" in line] or words
        raise RuntimeError(f"under MPI: {told[-1][:200] if told else 'a rank has ended'}")
    for j, job in enumerate(jobs):
        for r, array in enumerate(job):
            root(array)[:] = np.load(f"{j}_{r}.npy", allow_pickle=False)


def root(array: np.ndarray) -> np.ndarray:
    """The memory that an array lies in, with the guards around it: uint8 (bytes)."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.reshape(-1).view(np.uint8)


def start(array: np.ndarray) -> int:
    """The byte at which an array begins in its memory."""
    return array.ctypes.data - root(array).ctypes.data


def rank(size: int) -> None:
    """The program of one rank: its part of each job, whose arrays are float32."""
    import runpy

    from cnnlab.ranks import world

    every, program = world(), runpy.run_path("program.py")["PROGRAM"]
    given = np.load(JOB, allow_pickle=False)
    for j, starts in enumerate(given["starts"]):
        n_ranks = int((starts >= 0).sum())
        mine = every.rank < n_ranks
        comm = every.Split(int(mine), every.rank)
        if mine:
            memory = given[f"{j}_{every.rank}"].copy()
            at = int(starts[every.rank])
            program(comm, memory[at : memory.size - at].view(np.float32))
            np.save(f"{j}_{every.rank}.npy", memory)
        every.Barrier()


if __name__ == "__main__":
    try:
        rank(int(sys.argv[1]))
    except BaseException as error:  # also SystemExit: the others must not wait for this rank
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
