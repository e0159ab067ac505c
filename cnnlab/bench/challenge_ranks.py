"""A challenge on ranks: a learner's collective beside a lesson's, and the MPI library's own."""

from collections.abc import Callable, Mapping

from cnnlab.bench.measure import Timing
from cnnlab.check import collective
from cnnlab.check.exercises.kinds import empty
from cnnlab.check.verdict import Verdict
from cnnlab.ranks import library
from cnnlab.ranks.cluster import cluster
from cnnlab.runtime import thread_pool

MINE, GOAL = "mine", "MPI"


def challenge(
    operation: str,
    mine: Callable,
    rungs: Mapping[str, Callable] | None = None,
    *,
    n: int = 100_000,
    n_ranks: int | None = None,
    repeats: int = 11,
) -> dict[str, Timing] | None:
    """Prove a collective on 1 to 5 ranks, then time it in turn with the rungs and MPI's own.

    `mine` and the `rungs` take (comm, array), see `check.collective`; `n` is the number of float32
    on each of `n_ranks`, by default one for each core, from 2 to 8. Prints the verdict. Returns
    None, and times nothing, where `mine` is wrong or still empty.
    """
    if empty(mine):
        Verdict(False, f"{operation}: the challenge is still open").report()
        return None
    if not collective.collective(operation, mine):
        return None
    calls = {**(rungs or {}), GOAL: None, MINE: mine}
    with cluster(n_ranks or max(2, min(8, thread_pool.usable_cores()))) as ranks:
        samples = ranks.run(library.race, operation, calls, n, repeats)[0]
    return {name: Timing(name, tuple(samples[name])) for name in calls}
