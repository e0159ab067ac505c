"""Several cores: `numba.prange` is the parallel for, on as many threads as the pool is told.

The operations of the contract are those of `pixels`, an image a task; gradients of weights and
biases are sums over the images, and there a filter, map or output is a task. So no two threads
write the same number, and the result does not depend on timing. For whole steps each thread takes
its block of the batch as `vector` does; for many of them the threads are started once, as a team
that adds up its gradients in memory.
"""

import functools
import threading
from typing import NamedTuple

import numba
import numpy as np

from cnnlab.kernels import allreduce as allreduce_memory
from cnnlab.kernels import lanes, pixels
from cnnlab.kernels.allreduce import OFF, ROLL, Messages, Team, add_up, all_running
from cnnlab.kernels.contract import ANY
from cnnlab.kernels.programme import programme
from cnnlab.kernels.registers import LANES
from cnnlab.kernels.steps import Memory, gradients, memory, of_worker, rows_of, sgd_loop, subtract
from cnnlab.kernels.workers import Workers, allreduce, share
from cnnlab.runtime.arguments import at_least

FUSES = ANY
APART = 2  # threads use every second memory, for the reason of the gap in `row`
NONE = Messages(0, 0, 0, 0, 0)


@numba.njit(parallel=True)
def conv_forward(x, w, b, z, stride=1):
    """Convolution: x (N,C,H,W), w (F,C,K,K), b (F) → z (N,F,P,Q)."""
    for n in numba.prange(len(x)):
        pixels.conv_forward(x[n : n + 1], w, b, z[n : n + 1], stride)


@numba.njit(parallel=True)
def conv_backward_input(dz, w, dx, stride=1):
    """Gradient with respect to the input: dz (N,F,P,Q), w (F,C,K,K) → dx (N,C,H,W)."""
    for n in numba.prange(len(dx)):
        pixels.conv_backward_input(dz[n : n + 1], w, dx[n : n + 1], stride)


@numba.njit(parallel=True)
def conv_backward_weights(x, dz, dw, stride=1):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,F,P,Q) → dw (F,C,K,K)."""
    for f in numba.prange(len(dw)):
        pixels.conv_backward_weights(x, dz[:, f : f + 1], dw[f : f + 1], stride)


@numba.njit(parallel=True, fastmath=True, error_model="numpy")
def conv_backward_bias(dz, db):
    """Gradient with respect to the bias: dz (N,F,P,Q) → db (F)."""
    for f in numba.prange(len(db)):
        total = np.float32(0)
        for n in range(len(dz)):
            flat = dz[n, f].reshape(-1)
            for m in range(flat.size):
                total += flat[m]
        db[f] = total


pool_backward_bias = conv_backward_bias


@numba.njit(parallel=True)
def pool_forward(x, w, b, z, stride=4):
    """Trainable pooling: x (N,C,H,W), w (C,K,K), b (C) → z (N,C,P,Q)."""
    for n in numba.prange(len(x)):
        pixels.pool_forward(x[n : n + 1], w, b, z[n : n + 1], stride)


@numba.njit(parallel=True)
def pool_backward_input(dz, w, dx, stride=4):
    """Gradient with respect to the input: dz (N,C,P,Q), w (C,K,K) → dx (N,C,H,W)."""
    for n in numba.prange(len(dx)):
        pixels.pool_backward_input(dz[n : n + 1], w, dx[n : n + 1], stride)


@numba.njit(parallel=True)
def pool_backward_weights(x, dz, dw, stride=4):
    """Gradient with respect to the weights: x (N,C,H,W), dz (N,C,P,Q) → dw (C,K,K)."""
    for c in numba.prange(len(dw)):
        pixels.pool_backward_weights(x[:, c : c + 1], dz[:, c : c + 1], dw[c : c + 1], stride)


@numba.njit(parallel=True)
def max_pool_forward(x, z, stride=4):
    """Max pooling, windows of stride × stride: x (N,C,H,W) → z (N,C,P,Q)."""
    for n in numba.prange(len(x)):
        pixels.max_pool_forward(x[n : n + 1], z[n : n + 1], stride)


@numba.njit(parallel=True)
def max_pool_backward(x, dz, dx, stride=4):
    """Max pooling backward: x (N,C,H,W), dz (N,C,P,Q) → dx (N,C,H,W)."""
    for n in numba.prange(len(x)):
        pixels.max_pool_backward(x[n : n + 1], dz[n : n + 1], dx[n : n + 1], stride)


@numba.njit(parallel=True)
def dense_forward(x, w, b, z):
    """Fully connected layer: x (N,D), w (O,D), b (O) → z (N,O)."""
    for n in numba.prange(len(x)):
        pixels.dense_forward(x[n : n + 1], w, b, z[n : n + 1])


@numba.njit(parallel=True)
def dense_backward_input(dz, w, dx):
    """Gradient with respect to the input: dz (N,O), w (O,D) → dx (N,D)."""
    for n in numba.prange(len(dx)):
        pixels.dense_backward_input(dz[n : n + 1], w, dx[n : n + 1])


@numba.njit(parallel=True)
def dense_backward_weights(x, dz, dw):
    """Gradient with respect to the weights: x (N,D), dz (N,O) → dw (O,D)."""
    for o in numba.prange(len(dw)):
        pixels.dense_backward_weights(x, dz[:, o : o + 1], dw[o : o + 1])


@numba.njit(parallel=True)
def dense_backward_bias(dz, db):
    """Gradient with respect to the bias: dz (N,O) → db (O)."""
    for o in numba.prange(len(db)):
        pixels.dense_backward_bias(dz[:, o : o + 1], db[o : o + 1])


@numba.njit(parallel=True)
def sigmoid(z, y):
    """y = 1 / (1 + exp(-z)), element by element, a block of 4096 a task."""
    z, y = z.reshape(z.size), y.reshape(y.size)
    for i in numba.prange((z.size + 4095) // 4096):
        pixels.sigmoid(z[i * 4096 : i * 4096 + 4096], y[i * 4096 : i * 4096 + 4096])


@numba.njit(parallel=True)
def sigmoid_backward(y, dy, dz):
    """dz = dy y (1 - y), element by element, for arrays of any equal shape."""
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for i in numba.prange((y.size + 4095) // 4096):
        a, b = i * 4096, i * 4096 + 4096
        pixels.sigmoid_backward(y[a:b], dy[a:b], dz[a:b])


@numba.njit(parallel=True)
def relu(z, y):
    """y = max(z, 0), element by element, for arrays of any shape."""
    z, y = z.reshape(z.size), y.reshape(y.size)
    for i in numba.prange((z.size + 4095) // 4096):
        pixels.relu(z[i * 4096 : i * 4096 + 4096], y[i * 4096 : i * 4096 + 4096])


@numba.njit(parallel=True)
def relu_backward(y, dy, dz):
    """dz = 0 where y <= 0, else dy, element by element, for arrays of any equal shape."""
    y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
    for i in numba.prange((y.size + 4095) // 4096):
        a, b = i * 4096, i * 4096 + 4096
        pixels.relu_backward(y[a:b], dy[a:b], dz[a:b])


@numba.njit(parallel=True)
def cross_entropy(y, labels, dz):
    """Binary cross-entropy: y (N,O), labels (N) → dz (N,O); returns the loss.

    Each image's loss has its own place; they are added up in order, whatever the threads did.
    """
    losses = np.zeros(len(y))
    for n in numba.prange(len(y)):
        losses[n] = pixels.cross_entropy(y[n : n + 1], labels[n : n + 1], dz[n : n + 1])
    total = 0.0
    for n in range(losses.size):
        total += losses[n]
    return total


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

    Each thread takes a block of them. The gradients of the blocks are added up in their order, so
    the same number of threads gives the same bits.
    """
    chosen = np.arange(len(images)) if chosen is None else chosen
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
    batches = rows_of(images), labels, order, batch, rate
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
        on_all_threads(layers, tables, flat, images, labels, chosen, 1, 0.0, crew, False)
        loss += crew.losses[:, 0].sum()
        add_up(crew.parts, step)
        subtract(flat, allreduce(step, workers), np.float32(rate / chosen.size))
    return loss
