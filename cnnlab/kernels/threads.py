"""Several cores: `numba.prange` is the parallel for, on as many threads as the pool is told.

The operations of the contract are those of `pixels`, compiled once more: an image is a task, or,
where gradients are summed over the images, a filter, map or output. For whole steps each thread
takes its block of the batch as `vector` does; for many of them the threads are started once, as a
team that adds up its gradients in memory.
"""

import functools
import threading
import types
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels import allreduce as allreduce_memory
from cnnlab.kernels import lanes, pixels
from cnnlab.kernels.allreduce import OFF, ROLL, Messages, Team, add_up, all_running
from cnnlab.kernels.contract import ANY, CONTRACT
from cnnlab.kernels.programme import programme
from cnnlab.kernels.registers import LANES
from cnnlab.kernels.steps import Memory, gradients, memory, of_worker, rows_of, sgd_loop, subtract
from cnnlab.kernels.workers import Workers, allreduce, share
from cnnlab.runtime.arguments import at_least

FUSES = ANY
APART = 2  # threads use every second memory, for the reason of the gap in `row`
NONE = Messages(0, 0, 0, 0, 0)


def in_parallel(kernel):
    """A Numba function, compiled once more so that threads share the iterations of its prange."""
    own = kernel.py_func
    function = types.FunctionType(own.__code__, own.__globals__, own.__name__, own.__defaults__)
    function.__doc__, function.__module__ = own.__doc__, __name__
    function.__qualname__ = f"threads.{own.__name__}"  # Numba keeps what it compiles by this name
    return numba.jit(**kernel.targetoptions | {"parallel": True})(function)


globals().update({name: in_parallel(getattr(pixels, name)) for name in CONTRACT})


# --- whole steps ----------------------------------------------------------------------------------


class Crew(NamedTuple):
    """The memory of T threads, with rows (T,M or more) for each; see also `Team` and `Memory`.

    `ranks` (7) has the rank whose threads they are, the number of ranks, and its `Messages`.
    """

    params: np.ndarray
    parts: np.ndarray
    totals: np.ndarray
    counts: np.ndarray
    losses: np.ndarray
    ranks: np.ndarray
    flat: np.ndarray
    sums: np.ndarray
    numbers: np.ndarray
    factors: np.ndarray


def loss_and_gradients(params, images, labels, grads, chosen=None):
    """Loss of the images (M,C,H,W) number `chosen`, or all, and its gradients, like `vector`.

    Each takes a block; blocks are added up in order, so as many threads give the same bits.
    """
    chosen = np.arange(len(images)) if chosen is None else np.ascontiguousarray(chosen)
    plan, crew = programme(params.network), crew_of(params.network, len(chosen))
    batch = rows_of(images), labels, chosen, len(chosen), 0.0
    crew.ranks[:] = 0, 1, *NONE
    on_all_threads(plan.layers, plan.tables, params.flat, *batch, crew, False)
    add_up(crew.parts, grads.flat)
    return crew.losses[:, 0].sum()


def sgd_steps(params, grads, images, labels, order, batch, rate, workers=None):
    """As that of `vector`, each batch shared among the threads; `workers` are ranks."""
    at_least("batch", batch, 1)
    ranks, plan, n = workers or Workers(0, 1), programme(params.network), params.flat.size
    crew = crew_of(params.network, -(-min(batch, order.size) // ranks.size))
    batches = rows_of(images), labels, order, batch, float(rate)
    crew.ranks[:] = ranks.rank, ranks.size, *(ranks.messages or NONE)
    if crew.counts[ROLL] < OFF:
        crew.counts[:] = 0
        on_all_threads(plan.layers, plan.tables, params.flat, *batches, crew, True)
        if crew.counts[ROLL] < OFF:  # else they took turns, and have done nothing
            params.flat[:] = crew.params[0, :n]
            grads.flat[:] = crew.totals[0, :n]
            return crew.losses[:, 0].sum()
    return one_by_one(plan.layers, plan.tables, params.flat, grads.flat, *batches, crew, ranks)


def crew_of(network, n_images) -> Crew:
    """The crew of as many threads as Numba runs on, but no more than vectors of `n_images`.

    Each calling thread has its own.
    """
    n_threads = min(numba.get_num_threads(), max(1, -(-n_images // LANES)))
    return new_crew(threading.get_ident(), n_threads, network)


@functools.lru_cache(maxsize=8)
def new_crew(caller, n_threads, network) -> Crew:
    """The crew of a calling thread, for steps of a network."""
    rows = lanes.zeros(3, n_threads, allreduce_memory.row(network.zeros().flat.size))
    own = memory(caller, network, (APART * n_threads,))
    counts, losses = allreduce_memory.counts(), np.zeros((n_threads, 8))
    return Crew(*rows, counts, losses, np.zeros(7, np.int64), *own)


@numba.njit(parallel=True, nogil=True)
def on_all_threads(layers, tables, flat, images, labels, order, batch, rate, crew, together):
    """Train as a team, each thread with a copy of the parameters `flat` (M); the summed loss.

    Not `together`, each thread only leaves the gradients of its block of `order` in `crew.parts`.
    """
    T, M, losses, ranks = len(crew.parts), flat.size, crew.losses, crew.ranks
    for t in numba.prange(T):
        me = np.int64(t)  # prange counts without a sign: Numba would compile everything again
        team = Team(T, crew.parts, crew.totals[me, :M], crew.counts)
        messages = Messages(ranks[2], ranks[3], ranks[4], ranks[5], ranks[6])
        workers = Workers(me, T, team, messages, (ranks[0], ranks[1]))
        own = of_worker(Memory(crew.flat, crew.sums, crew.numbers, crew.factors), me * APART)
        params, grads = crew.params[me, :M], crew.parts[me, :M]
        for i in range(M):
            params[i] = flat[i]
        if not together:
            mine = share(order, workers)
            losses[me, 0] = gradients(
                layers, tables, params, grads, images, labels, mine, own, None
            )
        elif all_running(team):
            losses[me, 0] = sgd_loop(
                layers, tables, params, grads, images, labels, order, batch, rate, own, None,
                workers,
            )  # fmt: skip


@numba.njit(nogil=True)
def one_by_one(layers, tables, flat, step, images, labels, order, batch, rate, crew, workers):
    """Steps with the threads started for each: between two, one thread speaks to other ranks."""
    loss = 0.0
    for first in range(0, order.size, batch):
        chosen = order[first : first + batch]
        together = chosen.size == 0  # no; but for a constant, Numba would compile all again
        on_all_threads(layers, tables, flat, images, labels, chosen, batch, rate, crew, together)
        loss += crew.losses[:, 0].sum()
        add_up(crew.parts, step)
        subtract(flat, allreduce(step, workers), np.float32(rate / chosen.size))
    return loss
