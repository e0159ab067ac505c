"""Check a learner's collective operation on real ranks, odd numbers of them included."""

import contextlib
import re
from collections.abc import Callable

import numpy as np

from cnnlab.check.inputs import first_seed
from cnnlab.check.verdict import Verdict
from cnnlab.ranks.cluster import Cluster, RankError, cluster
from cnnlab.ranks.schedules import block
from cnnlab.runtime.arguments import one_of

MOST = 5  # ranks, so that 3 and 5 are among the numbers tried
SIZES = (1, 2, 7, 1000)
COLLECTIVE = "(?i)i?(all|bcast|reduce|gather|scatter|scan|exscan|neighbor)"
CALLS = "expected Send and Recv, got a collective"


def kernel(
    operation: str,
    function: Callable,
    ranks: Cluster | None = None,
    *,
    patience: float = 15,
    messages: bool = False,
) -> Verdict:
    """The verdict on `function(comm, array)` on 1 to 5 ranks.

    `operation` is "allreduce" (every rank's array becomes the sum), "reduce" (rank 0's does),
    "broadcast" (every rank's becomes rank 0's) or "allgather" (block r of every rank's becomes that
    of rank r). Arrays are float32, changed in place. Starts a cluster of MOST ranks unless `ranks`
    is one; `patience` is the seconds before a deadlock is declared, four times as many in
    `fresh_cases`, as a grader may be busy. With `messages`, MPI's own collectives are refused.
    Raises ValueError for an unknown operation.
    """
    one_of("operation", operation, EXPECTED)
    seed = first_seed()
    given = operation, function, messages, seed
    patience *= 4 if seed else 1
    try:
        with contextlib.nullcontext(ranks) if ranks else cluster(MOST) as ranks:
            ranks.run(loaded, function)
            result = next(filter(None, ranks.run(probe, *given, timeout=patience)), "")
    except RankError as error:
        result = str(error).partition("\n")[0]
        if "not finished in time" in result:
            result = f"deadlock, {result}: each waits for a message that no rank sends"
    said = f"not yet right: {result}" if result else f"is right on 1 to {MOST} ranks"
    return Verdict(not result, f"{operation} {said}")


def loaded(function: Callable) -> None:
    """On every rank, before the clock runs: import what the function and its check need."""


def probe(operation: str, function: Callable, messages: bool, seed: int) -> str:
    """On every rank: try the function on the first 1, 2, … ranks; return what is wrong, or ""."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    drawn = np.random.default_rng(seed).integers(3, 2000, 2)
    sizes = (1, 2, *map(int, drawn)) if seed else SIZES
    for size in range(1, MOST + 1):
        comm = world.Split(0 if world.rank < size else MPI.UNDEFINED, world.rank)
        wrong = ""
        for n in sizes if comm != MPI.COMM_NULL else ():
            rng = np.random.default_rng([seed, size, n])
            values = rng.uniform(0.5, 1, (size, n)).astype(np.float32)
            array = values[comm.rank].copy()
            function(Limited(comm, COLLECTIVE, CALLS) if messages else comm, array)
            wrong = wrong or compare(operation, array, values, comm.rank)
        wrong = next(filter(None, world.allgather(wrong)), "")
        if wrong:
            return f"on {size} ranks: {wrong}"
    return ""


class Limited:
    """A communicator without the calls whose names match `refused`; `text` says what is meant."""

    def __init__(self, comm, refused: str, text: str):
        self._comm, self._refused, self._text = comm, refused, text

    def __getattr__(self, name: str):
        if re.match(self._refused, name):
            raise AttributeError(f"comm.{name}: {self._text}")
        return getattr(self._comm, name)


def compare(operation: str, array, values, rank: int) -> str:
    """The element of a rank's array that is most wrong, in words; empty if none is."""
    expected = EXPECTED[operation](values, rank)
    if expected is None or np.allclose(array, expected, rtol=1e-5):
        return ""
    i = int(np.argmax(abs(array - expected)))
    return (
        f"rank {rank}, element {i} of {array.size}: expected {expected[i]:.6g}, got {array[i]:.6g}"
    )


EXPECTED: dict[str, Callable] = {
    "allreduce": lambda values, rank: values.sum(0, np.float64),
    "reduce": lambda values, rank: values.sum(0, np.float64) if rank == 0 else None,
    "broadcast": lambda values, rank: values[0],
    "allgather": lambda values, rank: np.concatenate(
        [row[slice(*block(r, len(values), len(row)))] for r, row in enumerate(values)]
    ),
}
