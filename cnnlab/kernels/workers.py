"""Workers that train together: who takes which images of a batch, and the sum of the gradients.

A worker is a thread or a rank. Workers add up their gradients in memory that they share, or by MPI.
"""

from typing import NamedTuple

import numba

from cnnlab.kernels.allreduce import Messages, Team, barrier, sum_by_mpi, sum_in_memory
from cnnlab.kernels.registers import LANES
from cnnlab.ranks import schedules

FEW = LANES // 4 + 1  # images: for fewer, vectors take longer than the contract's functions

block_bounds = numba.njit(schedules.block)


class Workers(NamedTuple):
    """Workers as one of them sees them: its number, how many there are, and how they add up.

    They share the batch of `rank_of`, a rank and the number of ranks: threads do so inside a rank.
    Then they have both a `team` and `messages`; a worker that is alone has neither. Numba compiles
    nothing for what is None.
    """

    rank: int
    size: int
    team: Team | None = None
    messages: Messages | None = None
    rank_of: tuple[int, int] = (0, 1)


ALONE = Workers(0, 1)


@numba.njit
def share(chosen, workers, few=None):
    """This worker's block of a batch (N): of the batch, its rank's; of that, its own.

    Without a way for `few` images, see `vector.steps`, no vector is divided.
    """
    of_rank = whole_vectors(chosen, *workers.rank_of, few)
    return whole_vectors(of_rank, workers.rank, workers.size, few)


@numba.njit
def whole_vectors(chosen, rank, size, few):
    """A worker's block of a batch (N), in whole vectors unless they would leave it one by one.

    A vector of images takes as long whether it is full or not: better that some workers have none.
    """
    unit = LANES if few is None or chosen.size >= FEW * size else 1
    first, last = block_bounds(rank, size, (chosen.size + unit - 1) // unit)
    return chosen[first * unit : last * unit]


@numba.njit
def allreduce(grads, workers):
    """The sum over all workers of their gradients (M): the same bits for all of them."""
    total = sum_in_memory(grads, workers.team)
    return sum_of_ranks(total, workers, workers.team, workers.messages)


@numba.njit
def sum_of_ranks(total, workers, team, messages):
    """The sum over all ranks of their totals (M); the first of a rank's team sends for all."""
    if messages is None:
        return total
    if team is None:
        return sum_by_mpi(total, messages)
    if workers.rank_of[1] == 1:
        return total
    if workers.rank == 0:
        team.parts[0, : total.size] = sum_by_mpi(total, messages)
    barrier(team)
    total[:] = team.parts[0, : total.size]
    barrier(team)
    return total
