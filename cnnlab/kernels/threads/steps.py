"""Several cores: whole training steps, a block of the batch a thread.

Each thread takes its block through `vector`. For many steps the threads are started once, as a team
that adds up its gradients in memory.
"""

import functools
import math
import threading
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels import allreduce as allreduce_memory
from cnnlab.kernels.allreduce import OFF, ROLL, Messages, Team, add_up, all_running
from cnnlab.kernels.registers import LANES
from cnnlab.kernels.vector import lanes
from cnnlab.kernels.vector.side_by_side import many_images, of_worker, scratch_memory
from cnnlab.kernels.vector.steps import Buffer, Weights, sgd_loop, subtract
from cnnlab.kernels.workers import ALONE, Workers, allreduce, share
from cnnlab.runtime.arguments import at_least

APART = 2  # threads use every second scratch memory, for the reason of the gap in `row`


NONE = Messages(0, 0, 0, 0, 0)


class Crew(NamedTuple):
    """The memory of T threads, with rows (T,M or more) for each; see also `Team`.

    `ranks` (7) has the rank whose threads they are, the number of ranks, and its `Messages`.
    """

    params: np.ndarray
    parts: np.ndarray
    totals: np.ndarray
    counts: np.ndarray
    losses: np.ndarray
    ranks: np.ndarray


def loss_and_gradients(params, x, labels, grads, chosen=None):
    """Loss of a batch x (N,C,H,W) with labels (N), and its gradients, like `vector`.

    Each thread takes a block of the batch. The gradients of the blocks are added up in their order,
    so the same number of threads gives the same bits.
    """
    chosen = np.arange(len(x)) if chosen is None else chosen
    flat = np.concatenate([array.ravel() for array in params])
    crew, scratch = crew_of(params, x, len(chosen))
    batch = x, labels, chosen, len(chosen), 0.0
    crew.ranks[:] = 0, 1, *NONE
    on_all_threads(flat, Weights(*params), *batch, crew, scratch, False)
    add_up(crew.parts, flat)
    last = 0
    for grad in grads:
        first, last = last, last + grad.size
        grad[...] = flat[first:last].reshape(grad.shape)
    return crew.losses[:, 0].sum()


def sgd_steps(params, grads, images, labels, order, batch, rate, workers=None):
    """As that of `vector`, each batch shared among the threads; `workers` are ranks."""
    at_least("batch", batch, 1)
    ranks, weights = workers or ALONE, Weights(*params)
    crew, scratch = crew_of(params, images, -(-min(batch, order.size) // ranks.size))
    batches = images, labels, order, batch, rate
    crew.ranks[:] = ranks.rank, ranks.size, *(ranks.messages or NONE)
    if crew.counts[ROLL] < OFF:
        crew.counts[:] = 0
        on_all_threads(params.flat, weights, *batches, crew, scratch, True)
        if crew.counts[ROLL] < OFF:  # else they took turns, and have done nothing
            params.flat[:] = crew.params[0, : params.flat.size]
            grads.flat[:] = crew.totals[0, : params.flat.size]
            return crew.losses[:, 0].sum()
    return one_by_one(params.flat, grads.flat, weights, *batches, crew, scratch, ranks)


def crew_of(params, images, n_images):
    """The crew of as many threads as Numba runs on, but no more than vectors of `n_images`.

    Each calling thread has its own.
    """
    shapes = tuple(array.shape for array in params)
    n_threads = min(numba.get_num_threads(), max(1, -(-n_images // LANES)))
    return new_crew(threading.get_ident(), n_threads, images.shape[1:], shapes)


@functools.lru_cache(maxsize=8)
def new_crew(caller, n_threads, image_shape, weight_shapes):
    """The crew of a calling thread, for images and parameters of these shapes."""
    n = sum(map(math.prod, weight_shapes))
    rows = lanes.zeros(3, n_threads, allreduce_memory.row(n))
    scratch = scratch_memory(caller, (APART * n_threads,), image_shape, weight_shapes)
    counts, losses = allreduce_memory.counts(), np.zeros((n_threads, 8))
    return Crew(*rows, counts, losses, np.zeros(7, np.int64)), scratch


@numba.njit(parallel=True, nogil=True)
def on_all_threads(flat, like, images, labels, order, batch, rate, crew, scratch, together):
    """Train as a team, each thread with a copy of the parameters `flat` (M); the summed loss.

    Not `together`, each thread only leaves the gradients of its block of `order` in `crew.parts`.
    `like` has arrays in the shapes of the parameters.
    """
    T, M, losses, ranks = len(crew.parts), flat.size, crew.losses, crew.ranks
    for t in numba.prange(T):
        me = np.int64(t)  # prange counts without a sign: Numba would compile everything again
        team = Team(T, crew.parts, crew.totals[me, :M], crew.counts)
        rank_of, messages = (
            (ranks[0], ranks[1]),
            Messages(ranks[2], ranks[3], ranks[4], ranks[5], ranks[6]),
        )
        workers = Workers(me, T, team, messages, rank_of)
        own = of_worker(scratch, me * APART)
        params = buffer(crew.params[me, :M], like)
        grads = buffer(crew.parts[me, :M], like)
        for i in range(M):
            params.flat[i] = flat[i]
        if not together:
            mine = share(order, workers)
            losses[me, 0] = many_images(params.arrays, grads.arrays, images, labels, mine, own)
        elif all_running(team):
            losses[me, 0] = sgd_loop(
                params, grads, images, labels, order, batch, rate, own, None, workers
            )


@numba.njit
def buffer(flat, like):
    """A vector (M), and views of it in the shapes of the parameters."""
    a = like.conv_w.size
    b = a + like.conv_b.size
    c = b + like.pool_w.size
    d = c + like.pool_b.size
    e = d + like.dense_w.size
    arrays = Weights(
        flat[:a].reshape(like.conv_w.shape), flat[a:b], flat[b:c].reshape(like.pool_w.shape),
        flat[c:d], flat[d:e].reshape(like.dense_w.shape), flat[e : e + like.dense_b.size],
    )  # fmt: skip
    return Buffer(flat, arrays)


@numba.njit(nogil=True)
def one_by_one(flat, step, like, images, labels, order, batch, rate, crew, scratch, workers):
    """Steps with the threads started for each: between two, one thread speaks to other ranks."""
    loss = 0.0
    for first in range(0, order.size, batch):
        chosen = order[first : first + batch]
        on_all_threads(flat, like, images, labels, chosen, 1, 0.0, crew, scratch, False)
        loss += crew.losses[:, 0].sum()
        add_up(crew.parts, step)
        subtract(flat, allreduce(step, workers), np.float32(rate / chosen.size))
    return loss
