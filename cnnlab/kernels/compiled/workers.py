"""Workers that train together: who takes which images of a batch, and the sum of the gradients.

A worker is a thread or a rank. Workers add up their gradients in memory that they share, or by MPI.
"""

from typing import NamedTuple

import numba

from cnnlab.kernels.compiled.allreduce_memory import Team, sum_in_memory
from cnnlab.kernels.compiled.allreduce_mpi import Messages, sum_by_mpi
from cnnlab.ranks import schedules

block_bounds = numba.njit(schedules.block)


class Workers(NamedTuple):
    """Workers as one of them sees them: its number, how many there are, and how they add up.

    Either `team` or `messages` is None, and both are for a worker that is alone. Numba compiles
    nothing for what is None.
    """

    rank: int
    size: int
    team: Team | None = None
    messages: Messages | None = None


ALONE = Workers(0, 1)


@numba.njit
def share(chosen, workers):
    """This worker's block of a batch (N): whole sixteens where there is one for every worker."""
    unit = 16 if chosen.size >= 16 * workers.size else 1
    n_units = (chosen.size + unit - 1) // unit
    first, last = block_bounds(workers.rank, workers.size, n_units)
    return chosen[first * unit : last * unit]


@numba.njit
def allreduce(grads, workers):
    """The sum over all workers of their gradients (M): the same bits for all of them."""
    return sum_by_mpi(sum_in_memory(grads, workers.team), workers.messages)
