"""Checking a learner's collective operation: on real ranks, also where their number is odd."""

import contextlib
from collections.abc import Callable

import numpy as np

from cnnlab.check.kernel import Verdict
from cnnlab.ranks.cluster import Cluster, RankError, cluster

MOST = 5  # ranks, so that 3 and 5 are among the numbers tried
SIZES = (1, 2, 7, 1000)


def collective(
    operation: str, function: Callable, ranks: Cluster | None = None, *, patience: float = 15
) -> bool:
    """Print the verdict on `function(comm, array)` on 1 to 5 ranks; return whether it is right.

    `operation` is "allreduce" (every rank's array becomes the sum), "reduce" (rank 0's does) or
    "broadcast" (every rank's becomes rank 0's). Arrays are float32, all in place. A cluster of
    MOST ranks is started for it, unless there is one in `ranks`.
    """
    if operation not in EXPECTED:
        raise ValueError(f"operation should be one of {', '.join(EXPECTED)}, got {operation!r}")
    try:
        with contextlib.nullcontext(ranks) if ranks else cluster(MOST) as ranks:
            found = next(filter(None, ranks.run(probe, operation, function, timeout=patience)), "")
    except RankError as error:
        found = str(error).partition("\n")[0]
        if "not finished in time" in found:
            found = f"deadlock, {found}: somebody waits for a message that nobody sends"
    said = f"not yet right: {found}" if found else f"is right on 1 to {MOST} ranks"
    print(Verdict(not found, f"{operation} {said}"))
    return not found


def probe(operation: str, function: Callable) -> str:
    """Runs on every rank: try the function on the first 1, 2, … ranks; say what is wrong."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    for size in range(1, MOST + 1):
        comm = world.Split(0 if world.rank < size else MPI.UNDEFINED, world.rank)
        wrong = ""
        for n in SIZES if comm != MPI.COMM_NULL else ():
            values = np.random.default_rng([size, n]).uniform(0.5, 1, (size, n)).astype(np.float32)
            array = values[comm.rank].copy()
            function(comm, array)
            wrong = wrong or compare(operation, array, values, comm.rank)
        wrong = next(filter(None, world.allgather(wrong)), "")
        if wrong:
            return f"on {size} ranks: {wrong}"
    return ""


def compare(operation: str, array, values, rank: int) -> str:
    """Say how a rank's array differs from what it should be; an empty string if it does not."""
    expected = EXPECTED[operation](values, rank)
    if expected is None or np.allclose(array, expected, rtol=1e-5):
        return ""
    i = int(np.argmax(abs(array - expected)))
    return (
        f"rank {rank}, element {i} of {array.size}: should be {expected[i]:.6g}, got {array[i]:.6g}"
    )


EXPECTED: dict[str, Callable] = {
    "allreduce": lambda values, rank: values.sum(0, np.float64),
    "reduce": lambda values, rank: values.sum(0, np.float64) if rank == 0 else None,
    "broadcast": lambda values, rank: values[0],
}
