"""Several cores: whole training steps, a block of the batch a thread.

Each thread takes its block through `vector`, and the threads are started once for many steps.
"""

import functools
import threading
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels.compiled import allreduce_memory, allreduce_mpi
from cnnlab.kernels.vector import lanes
from cnnlab.kernels.vector import steps as vector

# Threads use every second buffer, for the reason why `teams.row` leaves a gap.
APART = 2


def loss_and_gradients(params, x, labels, grads, chosen=None):
    """Loss of a batch x (N,C,H,W) with labels (N) and its gradients, as that of `vector`.

    Each thread takes a block of the batch through `vector` into gradients of its own; the blocks
    are added up in their order, so the same number of threads gives the same bits.
    """
    chosen = np.arange(len(x)) if chosen is None else chosen
    own, at = places(params, x)
    flat = np.concatenate([array.ravel() for array in params])
    total, n = at.totals[0, : at.size], len(chosen)
    # One step of what training has compiled: to compile `blocks_of_the_batch` too takes seconds.
    # A rate of n leaves the sum of the gradients as it is.
    loss = team_steps(flat, params, x, labels, chosen, n, float(n), own, at)
    if loss is None:
        loss = blocks_of_the_batch(*params, x, labels, chosen, total, own, at)
    last = 0
    for out in grads:
        first, last = last, last + out.size
        out[...] = total[first:last].reshape(out.shape)
    return loss


def sgd_steps(params, grads, images, labels, order, batch, rate, ranks=None):
    """As that of `vector`, with the threads sharing each batch."""
    batches, (own, at) = (images, labels, order, batch, rate), places(params, images)
    if ranks is None and (loss := team_steps(params.flat, params, *batches, own, at)) is not None:
        params.flat[:], grads.flat[:] = at.params[0, : at.size], at.totals[0, : at.size]
        return loss
    return sgd_loop(params.flat, grads.flat, *params, *batches, own, at, ranks)


def team_steps(flat, params, images, labels, order, batch, rate, own, at):
    """Train as a team: the loss, and the parameters in `at`; None if Numba's threads take turns."""
    if at.counts[allreduce_memory.ROLL] < allreduce_memory.OFF:  # it would be so again
        at.counts[:] = 0
        loss = team_of_threads(flat, *params, images, labels, order, batch, rate, own, at)
        if at.counts[allreduce_memory.ROLL] < allreduce_memory.OFF:
            return loss
    return None


class Places(NamedTuple):
    """Where T threads keep what is their own, and what they share.

    For the last two see `teams`, as for why rows (T,M) are longer than there are parameters.
    """

    size: int
    params: np.ndarray
    totals: np.ndarray
    parts: np.ndarray
    counts: np.ndarray


def places(params, images):
    """Buffers and places for as many threads as Numba runs on; each calling thread has its own."""
    n_threads, caller = numba.get_num_threads(), threading.get_ident()
    shapes = [array.shape for array in (images[0], *params)]
    own = vector.buffers(caller, APART * n_threads, *shapes)
    return own, places_of(caller, n_threads, sum(array.size for array in params))


@functools.lru_cache(maxsize=8)
def places_of(caller, n_threads, size):
    """Places of a calling thread, for so many parameters."""
    rows = lanes.zeros(3, n_threads, allreduce_memory.row(size))
    return Places(size, *rows, allreduce_memory.counts())


@numba.njit(parallel=True, nogil=True)
def team_of_threads(flat, cw, cb, pw, pb, dw, db, images, labels, order, batch, rate, own, at):
    """Steps of stochastic gradient descent, each thread with a copy of the parameters `flat`."""
    T, M = len(at.parts), flat.size
    losses = np.zeros((T, 8))  # a cache line for each, too
    for t in numba.prange(T):
        me = np.int64(t)  # prange counts without a sign: Numba would compile all anew
        team = allreduce_memory.Team(me, T, at.parts, at.totals[me, :M], at.counts)
        if allreduce_memory.all_here(team):
            mine, step = at.params[me, :M], at.parts[me, :M]
            for i in range(M):
                mine[i] = flat[i]
            p1, p2, p3, p4, p5, p6 = views(mine, cw, cb, pw, pb, dw, db)
            d1, d2, d3, d4, d5, d6 = views(step, cw, cb, pw, pb, dw, db)
            losses[me, 0] = vector.sgd_loop(
                mine, step, p1, p2, p3, p4, p5, p6, d1, d2, d3, d4, d5, d6,
                images, labels, order, batch, rate, own, me * APART, None, team, None,
            )  # fmt: skip
    return losses[:, 0].sum()


@numba.njit
def views(row, cw, cb, pw, pb, dw, db):
    """Views of a row of numbers in the shapes of the parameters."""
    a, b, c = cw.size, cw.size + cb.size, cw.size + cb.size + pw.size
    d, e = c + pb.size, c + pb.size + dw.size
    return (
        row[:a].reshape(cw.shape), row[a:b], row[b:c].reshape(pw.shape),
        row[c:d], row[d:e].reshape(dw.shape), row[e : e + db.size],
    )  # fmt: skip


@numba.njit(nogil=True)
def sgd_loop(
    flat, step, cw, cb, pw, pb, dw, db, images, labels, order, batch, rate, own, at, ranks
):
    """Steps with the threads started for each: in between, one thread can speak to other ranks."""
    loss = 0.0
    for first in range(0, order.size, batch):
        chosen = order[first : first + batch]
        for part in range(allreduce_mpi.parts(ranks)):
            mine = allreduce_mpi.share(chosen, ranks, part)
            loss += blocks_of_the_batch(cw, cb, pw, pb, dw, db, images, labels, mine, step, own, at)
            allreduce_mpi.send(step, ranks, part)
        allreduce_mpi.receive(step, ranks)
        step *= np.float32(rate / chosen.size)
        flat -= step
    return loss


@numba.njit(parallel=True)
def blocks_of_the_batch(cw, cb, pw, pb, dw, db, images, labels, chosen, total, own, at):
    """Loss and gradients, a block of the batch a thread.

    The gradients come one after the other in `total`, as the parameters are here.
    """
    T, M = len(at.parts), at.size
    losses = np.zeros((T, 8))
    for t in numba.prange(T):
        me = np.int64(t)
        mine = allreduce_memory.share(
            chosen, allreduce_memory.Team(me, T, at.parts, total, at.counts)
        )
        d1, d2, d3, d4, d5, d6 = views(at.parts[me, :M], cw, cb, pw, pb, dw, db)
        losses[me, 0] = vector.many_images(
            cw, cb, pw, pb, dw, db, images, labels, mine, d1, d2, d3, d4, d5, d6, own, me * APART
        )
    allreduce_memory.add_up(at.parts, total)
    return losses[:, 0].sum()
